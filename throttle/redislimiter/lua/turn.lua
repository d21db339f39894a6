-- Turn takes turns on all legs or changes nothing.
--
-- KEYS: per leg the scope and the windows of its strict rates.
-- ARGV: turns wanted, microseconds that a turn may lie ahead, legs; per leg its weight,
-- the number of rates, and per rate: turns, period, burst, strict, name.
local want, horizon, legs = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local plan, a, k = {}, 4, 1
local start, binding, why = NOW, 0, 'rate'

local function later(at, leg, reason)
  if at > start then start, binding, why = at, leg, reason end
end

-- The stamp after whose period a strict window has room.
local function leaves(s, r, weight)
  local allowed = math.max(1, math.floor(r.n * factor(s, NOW) / ONE), weight)
  local size = group(r)
  local need = math.floor((allowed - weight) / size) + 1
  local stamp = redis.call('LINDEX', r.list, -need)
  if not stamp then return 0 end
  return tonumber(stamp) + r.per
end

for i = 1, legs do
  local key, weight = KEYS[k], tonumber(ARGV[a])
  local rates
  rates, a, k = read(a + 1, k + 1)
  local s = load(key, rates)
  refresh(s)
  if s.gate > 0 then later(s.gate, i, 'gate') end
  if s.cap > 0 then
    if s.n >= s.upto then later(s.cap, i, 'gate') end
    want = math.max(1, math.min(want, s.upto - s.n))
  end
  for _, r in ipairs(rates) do
    if r.burst > 0 then
      local from = math.max(NOW, r.at)
      local missing = weight * ONE - level(s, r, from)
      if missing > 0 then later(due(s, r.n, r.per, from, missing), i, 'rate') elseif from > NOW then later(from, i, 'rate') end
    end
    if r.strict then
      want = 1
      later(leaves(s, r, weight), i, 'rate')
      if NOW < r.paced then later(math.min(r.next, r.paced), i, 'rate') end
    end
  end
  plan[i] = {s = s, weight = weight}
end
-- A turn may lie ahead if the first leg is what it waits for: then all later turns of
-- these scopes come after it. Else it would keep up those who need other scopes.
if start > NOW + horizon or why == 'gate' or (start > NOW and binding > 1) then return {'wait', put(start), put(NOW), binding - 1, why} end

local grants = {}
for i, leg in ipairs(plan) do
  local s = leg.s
  s.n, s.known = s.n + want, true
  grants[i] = put(s.n)
  for _, r in ipairs(s.rates) do
    if r.burst > 0 then
      local at = math.max(start, r.at)
      r.level, r.at = level(s, r, at) - want * leg.weight * ONE, at
    end
    if r.strict then
      local size = group(r)
      if size == 1 then
        for _ = 1, leg.weight do redis.call('RPUSH', r.list, put(start)) end
      else
        -- The open group is the last stamp, and its count a field.
        local inside = int(redis.call('HGET', s.key, 'inside' .. r.id)) + leg.weight
        if inside > leg.weight then redis.call('RPOP', r.list) end
        while inside > 0 do
          redis.call('RPUSH', r.list, put(start))
          inside = inside - size
        end
        redis.call('HSET', s.key, 'inside' .. r.id, put((inside + size) % size))
      end
      redis.call('LTRIM', r.list, -math.ceil(r.n / size), -1)
      redis.call('PEXPIRE', r.list, put(math.ceil(2 * r.per / 1000) + 60000))
      if start < r.paced then r.next = start + math.floor(r.per / r.n) * leg.weight end
    end
  end
  save(s)
end
return {'turn', put(start), put(NOW), want, grants, binding - 1}
