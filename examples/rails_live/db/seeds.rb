# frozen_string_literal: true

{"NIHON" => ["Nihonbashi Couriers", 48_20], "HAKON" => ["Hakone Passes", 12_75], "KUWAN" => ["Kuwana Ferries", 8_40],
 "SANJO" => ["Sanjo Bridge", 97_10]}.each do |symbol, (name, price)|
  Stock.find_or_create_by!(symbol: symbol) { |stock| stock.attributes = {name: name, price: price, opening: price} }
end

["Along the Tokaido", "Weather at the pass"].each { |title| Conversation.find_or_create_by!(title: title) }
