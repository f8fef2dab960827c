# frozen_string_literal: true

class Stock < ApplicationRecord
  # Now, and not `broadcasts_to`, whose jobs run side by side: an older price could arrive after a newer one.
  after_update_commit -> { broadcast_replace_to "stocks" }

  def change_of_price = price - opening

  def buy(shares)
    with_lock { update!(price: price + 1 + shares / 100, volume: volume + shares) }
  end

  def wander
    with_lock { update!(price: [price + rand(-25..25), 1].max) }
  end
end
