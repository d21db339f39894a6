-- Turn takes turns on all legs or none.
--
-- KEYS: per leg the scope and the windows of its strict rates.
-- ARGV: turns wanted, microseconds that a turn may lie ahead, and a description: MAGIC,
-- the number of legs; per leg its weight, the number of rates, and per rate: turns,
-- period, burst, strict, name.
-- The answer: 0, start, now, the leg that binds, and per leg the count of grants with the
-- first turn; then that with the last one on the last leg. Or 1 (rate) or 2 (gate), when
-- to come again, now, and the leg that binds.
local want, horizon, legs = tonumber(ARGV[1]), tonumber(ARGV[2]), describe(ARGV[3])
local plan, k = {}, 1
local start, binding, why = NOW, 1, 'rate'

local function later(at, leg, reason)
  if at > start then start, binding, why = at, leg, reason end
end

local anew = {} -- lists of turns that a clock noted before it was set back

-- The stamp after whose period a strict window has room.
local function leaves(s, r, list, weight)
  local allowed = max(1, floor(r[TURNS] * factor(s, NOW) / ONE), weight)
  local need = floor((allowed - weight) / group(r)) + 1
  local stamp = redis.call('LINDEX', list, -need)
  stamp = tonumber(stamp) or -r[PER]
  if stamp > NOW + LATEST then -- the clock was set back: as after a gate
    anew[list], r[NEXT], r[PACED] = true, NOW, NOW + r[PER]
    return 0
  end
  return stamp + r[PER]
end

for i = 1, legs do
  local s, weight = load(KEYS[k]), word()
  plan[i], s.weight, s.list = s, weight, k
  rates(s)
  k = k + 1
  refresh(s)
  if s.gate > 0 then later(s.gate, i, 'gate') end
  if s.cap > 0 then
    if s.n >= s.upto then later(s.cap, i, 'gate') end
    want = max(1, min(want, s.upto - s.n))
  end
  for j = 1, s.asked do
    local r = s.rates[j]
    if r[BURST] > 0 then
      local from = max(NOW, r[AT])
      local missing = weight * ONE - level(s, r, from)
      if missing > 0 then later(due(s, r[TURNS], r[PER], from, missing), i, 'rate') elseif from > NOW then later(from, i, 'rate') end
    end
    if r[STRICT] == 1 then
      want = 1
      later(leaves(s, r, KEYS[k], weight), i, 'rate')
      if NOW < r[PACED] then later(min(r[NEXT], r[PACED]), i, 'rate') end
      k = k + 1
    end
  end
end
-- A turn may lie ahead if the first leg is what it waits for: then all later turns of
-- these scopes come after it. Else it would keep up those who need other scopes.
if start > NOW + horizon or why == 'gate' or (start > NOW and binding > 1) then
  for _, s in ipairs(plan) do
    if s.back then save(s, legs == 1 and ARGV[3], s.weight) end -- or it would never earn what is missing
  end
  return {why == 'gate' and 2 or 1, start, NOW, binding - 1}
end

-- take notes the turns in a strict window.
local function take(r, list, weight)
  local size = group(r)
  if anew[list] then
    redis.call('DEL', list)
    anew[list], r[INSIDE] = nil, 0
  end
  if size == 1 then
    for _ = 1, weight do redis.call('RPUSH', list, string.format('%.0f', start)) end
  else
    -- The open group is the last stamp, and inside its count.
    local inside = r[INSIDE] + weight
    if inside > weight then redis.call('RPOP', list) end
    r[INSIDE] = inside % size
    while inside > 0 do
      redis.call('RPUSH', list, string.format('%.0f', start))
      inside = inside - size
    end
  end
  redis.call('LTRIM', list, -ceil(r[TURNS] / size), -1)
  lasts(r, list)
  if start < r[PACED] then r[NEXT] = start + floor(r[PER] / r[TURNS]) * weight end
end

local answer = {0, start, NOW, binding - 1}
for i = 1, legs do
  local s = plan[i]
  local weight, list = s.weight, s.list
  s.n = s.n + want
  answer[4 + i], answer[5 + i] = s.n - want + 1, s.n
  for j = 1, s.asked do
    local r = s.rates[j]
    if r[BURST] > 0 then
      local at = max(start, r[AT])
      r[LEVEL], r[AT] = level(s, r, at) - want * weight * ONE, at
    end
    if r[STRICT] == 1 then
      list = list + 1
      take(r, KEYS[list], weight)
    end
  end
  save(s, legs == 1 and ARGV[3], weight)
end
return answer
