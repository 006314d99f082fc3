# Objects for Ruby: objects.rb ROUNDS.  Structs, strings, arrays and hashes; a part of them outlives the round.
Item = Struct.new(:number, :name, :tags, :price)
RANDOM = Random.new(1)
KEPT = 30_000

def one_round(start)
  items = (0...4000).map do |n|
    tags = Array.new(1 + RANDOM.rand(6)) { "tag#{RANDOM.rand(500)}" }
    Item.new(start + n, "item-#{start + n}-#{RANDOM.rand(1 << 30).to_s(16)}", tags, RANDOM.rand * n)
  end
  by_tag = Hash.new { |hash, tag| hash[tag] = [] }
  items.each { |item| item.tags.each { |tag| by_tag[tag] << item } }
  lines = by_tag.sort.map { |tag, found| "#{tag}: " + found.map(&:name).join(', ') }
  words = lines.flat_map { |line| line.split(/[:,] /) }.tally
  items.select { |item| words[item.name] }.map { |item| item.to_h.merge(text: item.name.gsub(/\d+/, '#') * 3) }
end

kept = []
ARGV[0].to_i.times do |round|
  kept.concat(one_round(round * 4000))
  kept.shuffle!(random: RANDOM)
  kept.slice!(KEPT..)
end
puts kept.size
