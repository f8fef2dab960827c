# frozen_string_literal: true

# A visit with a library: it reads the HTML, then fetches all images. With `start=list` it fetches everything at once, without reading
# the HTML. With `start=open` it fetches the page twice, without a cache, and the second time counts: the connections are open then.

require_relative "libraries"
require_relative "visit"

def page(library, visit)
  html = library.batch([visit.uri.path]).first
  [html, library.batch(visit.paths(html))]
end

Visit.run do |visit|
  start = visit.options["start"]
  options = (start == "open") ? visit.options.merge("cache" => "no") : visit.options
  library = Libraries.open(options.fetch("library"), visit.uri, options)
  if start == "open"
    page(library, visit)
    visit.restart
  end
  if start == "list"
    html, *bodies = library.batch([visit.uri.path, *visit.sheet.images])
    visit.got(html, bodies)
  else
    visit.got(*page(library, visit))
  end
  visit.connections = library.connections
  library.close
end
