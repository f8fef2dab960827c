import "@hotwired/turbo-rails"
import "hikyaku"
