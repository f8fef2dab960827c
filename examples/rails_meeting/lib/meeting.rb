# frozen_string_literal: true

# Users, rooms and messages, in memory. The file is in lib, not in app, so that they outlive the reloading of code.
module Meeting
  NAME_LENGTHS = (1..40)
  MESSAGE_LENGTHS = (1..500)
  MESSAGES = 100
  private_constant :NAME_LENGTHS, :MESSAGES

  # A user, from sign-in to sign-out.
  User = Struct.new(:id, :name, keyword_init: true) do
    def rooms = Rooms.new(self)
  end

  # `members` are names; nil admits every user.
  Room = Struct.new(:id, :title, :members, :messages, keyword_init: true) do
    def admits?(user) = members.nil? || members.include?(user.name)

    # @return [Hash, nil] the message; nil when it is too long, or empty
    def say(user, text)
      text = text.to_s.strip
      return unless MESSAGE_LENGTHS.cover?(text.length)
      {id: SecureRandom.uuid, user: user.id, name: user.name, text: text}.tap do |message|
        messages << message
        messages.shift if messages.size > MESSAGES
      end
    end
  end

  # The rooms that admit a user.
  Rooms = Struct.new(:user) do
    def to_a = ALL.select { |room| room.admits?(user) }

    # @raise [ActionController::RoutingError] no such room admits the user: Rails answers 404
    def find(id) = to_a.find { |room| room.id == id.to_i } || raise(ActionController::RoutingError, "no such room")
  end

  ALL = [Room.new(id: 1, title: "Hall", messages: []), Room.new(id: 2, title: "Office", members: %w[Ada Bob], messages: [])].freeze
  private_constant :Rooms, :ALL

  @users = {}

  class << self
    # @return [User, nil] nil when the name has no letters, or too many
    def enter(name)
      name = name.to_s.strip
      return unless NAME_LENGTHS.cover?(name.length)
      User.new(id: SecureRandom.uuid, name: name).tap { |user| @users[user.id] = user }
    end

    def user(id) = @users[id]

    def leave(user) = @users.delete(user.id)
  end
end
