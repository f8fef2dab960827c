# frozen_string_literal: true

require "json"
require "hikyaku/broker/wire"

# The frames of test/vectors/protocol.
module ProtocolVectors
  Wire = Hikyaku::Broker::Wire

  FOLDER = File.expand_path("../vectors/protocol", __dir__)

  class << self
    # @return [Array<Hash>] of `client`, `broker` or `malformed`
    def of(name) = JSON.parse(File.read(File.join(FOLDER, "#{name}.json")), symbolize_names: true)

    def bytes(vector) = unhex(vector[:hex])

    # What Wire builds from the fields of a vector.
    def build(vector)
      fields = vector.except(:name, :frame, :hex)
      case vector[:frame]
      when "SEND" then Wire.send_message(to: fields.delete(:destination), **fields, properties: unhex(fields[:properties]), payload: unhex(fields[:payload]))
      when "SEND_BATCH"
        messages = fields.delete(:properties).zip(fields.delete(:payloads)).map { |pair| pair.map { |text| unhex(text) } }
        Wire.send_batch(to: fields.delete(:destination), messages: messages, **fields.except(:count))
      when "SUBSCRIBE", "QUERY" then Wire.public_send(vector[:frame].downcase, name: fields.delete(:queue), **fields)
      when "FREE" then Wire.free(**fields, level: fields[:level].zero? ? nil : fields[:level] - 1)
      when "DRAIN" then fields.key?(:retry_after) ? Wire.draining(**fields) : Wire.drain(**fields)
      when "ACK"
        return Wire.receipt(**fields) unless fields.key?(:request)
        range = [vector[:hex]].pack("H*").getbyte(5).anybits?(1)
        Wire.ack(**fields, last: range ? fields[:last] : nil, refusals: fields[:refusals].each_slice(3).to_a)
      when "PUSH" then Wire.push(**fields, properties: unhex(fields[:properties]), payload: unhex(fields[:payload]))
      when "ERROR" then Wire.error(**fields.except(:later))
      else Wire.public_send(vector[:frame].downcase, **fields)
      end
    end

    # The fields of a frame that was read, by the names of the vectors.
    def fields_of(frame)
      fields = frame.to_h
      case frame
      when Wire::Frames::Send, Wire::Frames::Push
        fields = fields.except(:properties_size, :content).merge(properties: hex(frame.properties), payload: hex(frame.payload))
      when Wire::Frames::SendBatch
        fields = fields.except(:messages).merge(count: frame.messages.size, properties: frame.messages.map { |item| hex(item.properties) },
          payloads: frame.messages.map { |item| hex(item.payload) })
      when Wire::Frames::Subscribe, Wire::Frames::Query then fields = fields.except(:name).merge(queue: frame.name)
      when Wire::Frames::Ack then fields = fields.merge(refusals: frame.refusals.flat_map(&:to_a))
      end
      fields.transform_values { |value| value.is_a?(String) ? value.dup.force_encoding(Encoding::UTF_8) : value }
    end

    private

    def hex(bytes) = bytes.unpack1("H*")

    def unhex(text) = [text].pack("H*")
  end
end
