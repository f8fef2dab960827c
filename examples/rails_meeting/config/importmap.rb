# frozen_string_literal: true

pin "room"
