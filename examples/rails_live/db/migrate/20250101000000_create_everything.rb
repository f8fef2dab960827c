# frozen_string_literal: true

class CreateEverything < ActiveRecord::Migration[7.2]
  def change
    create_table :users do |t|
      t.string :name, null: false, index: {unique: true}
      t.timestamps
    end

    create_table :sign_ins do |t|
      t.references :user, null: false, foreign_key: true
      t.timestamps
    end

    create_table :stocks do |t|
      t.string :symbol, null: false, index: {unique: true}
      t.string :name, null: false
      # In hundredths: sums of floats are not exact.
      t.integer :price, :opening, null: false
      t.integer :volume, null: false, default: 0
      t.timestamps
    end

    create_table :conversations do |t|
      t.string :title, null: false, index: {unique: true}
      t.timestamps
    end

    create_table :messages do |t|
      t.references :conversation, :user, null: false, foreign_key: true
      t.string :body, null: false
      t.timestamps
    end

    create_table :exports do |t|
      t.references :user, null: false, foreign_key: true
      t.integer :done, null: false, default: 0
      t.integer :total, null: false
      t.timestamps
    end

    create_table :answers do |t|
      t.references :user, null: false, foreign_key: true
      t.string :question, null: false
      t.json :tokens, null: false, default: []
      t.boolean :finished, null: false, default: false
      t.timestamps
    end
  end
end
