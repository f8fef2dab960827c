# frozen_string_literal: true

# One process: it keeps the meeting in its memory.
threads 3, 5
port ENV.fetch("PORT", 3000)
