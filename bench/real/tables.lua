-- A job for Lua, heavy in tables, closures and strings: tables.lua ROUNDS.
local state = 12345
local function random(n)
  state = (state * 1103515245 + 12345) & 0x7fffffff
  return state % n
end

local function tree(depth)
  if depth == 0 then return { leaf = random(1000) } end
  return { left = tree(depth - 1), right = tree(depth - 1), name = "node" .. random(100000) }
end

local function sum(node)
  if node.leaf then return node.leaf end
  return sum(node.left) + sum(node.right)
end

local kept, total = {}, 0
for round = 1, tonumber(arg[1]) do
  local words = {}
  for n = 1, 3000 do
    local number = random(50000)
    words[n] = function() return "word" .. number .. "/" .. round end
  end
  local parts = {}
  for n, word in ipairs(words) do parts[#parts + 1] = word():upper() end
  local text, seen = table.concat(parts, " "), {}
  for word in text:gmatch("%S+") do seen[word] = (seen[word] or 0) + 1 end
  kept[round % 8] = { tree = tree(11), seen = seen, text = text }
  total = total + sum(kept[round % 8].tree)
end
print(total)
