local SECOND = 1000000
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

-- A rate is a list of these: a bucket has LEVEL tokens AT an instant, a strict window that
-- has just opened paces its turns until PACED, the next NEXT, and INSIDE is what its open
-- group counts.
local ID, TURNS, PER, BURST, STRICT, LEVEL, AT, NEXT, PACED, INSIDE = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10

-- load reads a scope: n is how many turns it gave, seen when the last was, gate until when
-- it is shut and cause why; upto is the count that a cap allows until cap, base where that
-- count began, and told the count when it was set; slow is the factor at slowed; drained is
-- the count when it last opened. The first rates, asked of them, hold now; the others did
-- once. What a clock told of the future before it was set back is of now; back says so.
local function load(key)
  local raw = redis.call('GET', key)
  local s, back = {MAGIC, 0, 0, 0, {}}, false
  if raw and string.sub(raw, 73, 72 + #MAGIC) == MAGIC then -- of plain.lua
    local n, level, at, _, drained, _, turns, per, full = struct.unpack('<ddddddddd', raw)
    s = {MAGIC, n, at, drained, {{string.match(raw, '%S+$'), turns, per, full / ONE, 0, level, at, 0, 0, 0}}}
  elseif raw then
    s = cmsgpack.unpack(raw)
    if type(s) ~= 'table' or s[1] ~= MAGIC then error('WRONGTYPE a key of another program') end
  end
  for _, r in ipairs(s[5]) do
    if r[AT] > NOW + LATEST then r[AT], back = NOW, true end
    if r[PACED] > NOW + LATEST + r[PER] then r[NEXT], r[PACED] = NOW, NOW + r[PER] end
  end
  local rest = s[6] or {}
  return {
    key = key, n = s[2], seen = min(s[3], NOW), drained = s[4], rates = s[5], gate = rest[1] or 0, cause = rest[2] or '', cap = rest[3] or 0,
    upto = rest[4] or 0, base = rest[5] or 0, slow = rest[6] or 0, slowed = min(rest[7] or 0, NOW), asked = rest[8] or #s[5], told = rest[9] or 0, back = back,
  }
end

-- The words of a description, and the place of the next one.
local words, place = {}, 3
local function describe(text)
  for w in string.gmatch(text, '%S+') do words[#words + 1] = w end
  return tonumber(words[2])
end

-- word reads the next one, a number.
local function word()
  place = place + 1
  return tonumber(words[place - 1])
end

-- The slow factor at an instant: every second gives 2 % back.
local function factor(s, at)
  if s.slow == 0 then return ONE end
  return min(ONE, s.slow + 20000 * max(0, floor((at - s.slowed) / SECOND)))
end

-- step is when the factor changes next after an instant, or nil.
local function step(s, at)
  if factor(s, at) == ONE then return nil end
  return s.slowed + (floor(max(0, at - s.slowed) / SECOND) + 1) * SECOND
end

-- earned is what n per period earn between two instants.
local function earned(s, n, per, from, to)
  if s.slow == 0 then return floor((to - from) * n * ONE / per) end
  local sum = 0
  while from < to do
    local stop = min(to, step(s, from) or to)
    sum = sum + floor((stop - from) * n * factor(s, from) / per)
    from = stop
  end
  return sum
end

-- due is when the missing tokens are earned.
local function due(s, n, per, from, missing)
  if s.slow == 0 then return from + ceil(missing * per / (n * ONE)) end
  while true do
    local stop, rate = step(s, from), n * factor(s, from)
    local at = from + ceil(missing * per / rate)
    if not stop or at <= stop then return at end
    missing, from = missing - floor((stop - from) * rate / per), stop
  end
end

-- rated gives the scope its i-th rate from the words that come next, with the state that
-- it had under this id. A rate that is new to a known scope begins empty, with its last
-- turn.
local function rated(s, i)
  local turns, per, burst, strict, id = word(), word(), word(), word(), words[place]
  place = place + 1
  local r = s.rates[i]
  if not r or r[ID] ~= id then
    local was
    for j = i, #s.rates do
      if s.rates[j][ID] == id then was = table.remove(s.rates, j) break end
    end
    r = was or {id, 0, 0, 0, 0, 0, s.seen, 0, 0, 0}
    table.insert(s.rates, i, r)
    if #s.rates > 16 then table.remove(s.rates) end
    if not was and s.n == 0 then r[LEVEL], r[AT] = burst * ONE, NOW end
  end
  r[TURNS], r[PER], r[BURST], r[STRICT] = turns, per, burst, strict
  r[LEVEL] = min(r[LEVEL], burst * ONE)
end

-- rates gives it those of the next words.
local function rates(s)
  s.asked = word()
  for i = 1, s.asked do rated(s, i) end
end

-- level is what a bucket has at an instant that is not before its own.
local function level(s, r, at)
  if at <= r[AT] then return r[LEVEL] end
  return min(r[BURST] * ONE, r[LEVEL] + earned(s, r[TURNS], r[PER], r[AT], at))
end

-- open lets the scope go on at an instant.
local function open(s, at)
  s.drained, s.seen = s.n, max(s.seen, at)
  local tokens = false
  for i, r in ipairs(s.rates) do
    if r[BURST] > 0 then
      tokens = tokens or i <= s.asked
      local from = max(at, r[AT])
      r[LEVEL], r[AT] = min(ONE, level(s, r, from)), from
    end
  end
  for _, r in ipairs(s.rates) do
    if r[STRICT] == 1 and not tokens then r[NEXT], r[PACED] = at, at + r[PER] end
  end
end

local function refresh(s)
  if s.gate > 0 and s.gate <= NOW then
    local at = s.gate
    s.gate, s.cause = 0, ''
    open(s, at)
  end
  if s.cap > 0 and s.cap <= NOW then
    local at, shut = s.cap, s.n >= s.upto
    s.cap, s.upto, s.base, s.told = 0, 0, 0, 0
    if shut then open(s, at) end
  end
  if s.slow > 0 and factor(s, NOW) == ONE then s.slow, s.slowed = 0, 0 end
end

-- save writes a scope, which expires when it is as good as new. With the legs that it was
-- asked for, if nothing but one bucket limits it, plain.lua reads it next.
local function save(s, legs, weight)
  local last, r, value = max(NOW, s.gate, s.cap), s.rates[1], nil
  if s.slow > 0 then last = max(last, s.slowed + 50 * SECOND) end
  for _, r in ipairs(s.rates) do
    if r[BURST] > 0 then last = max(last, due(s, r[TURNS], r[PER], max(NOW, r[AT]), max(0, r[BURST] * ONE - r[LEVEL]))) end
    if r[STRICT] == 1 then last = max(last, NOW + 2 * r[PER], r[PACED]) end
  end
  local expires = ceil(last / 1000) + 120000
  if s.gate > 0 or s.cap > 0 or s.slow > 0 or s.asked < #s.rates then
    value = cmsgpack.pack({MAGIC, s.n, NOW, s.drained, s.rates, {s.gate, s.cause, s.cap, s.upto, s.base, s.slow, s.slowed, s.asked, s.told}})
  elseif legs and #s.rates == 1 and r[STRICT] == 0 then
    value = struct.pack('<ddddddddd', s.n, r[LEVEL], r[AT], expires, s.drained, weight * ONE, r[TURNS], r[PER], r[BURST] * ONE) .. legs
  else
    value = cmsgpack.pack({MAGIC, s.n, NOW, s.drained, s.rates})
  end
  redis.call('SET', s.key, value, 'PXAT', string.format('%.0f', expires))
end

-- A strict window of more than 1,024 turns counts them in groups, each of which leaves
-- with the latest of its turns: it admits less, never more.
local function group(r) return ceil(r[TURNS] / 1024) end

-- lasts keeps the list of its turns for as long as they count.
local function lasts(r, list) redis.call('PEXPIRE', list, string.format('%.0f', ceil(2 * r[PER] / 1000) + 60000)) end
