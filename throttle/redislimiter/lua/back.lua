-- Back gives turns back that were not used, or takes what one weighed more.
--
-- KEYS: a note that this was done; per leg as for a turn. ARGV: when they started, the
-- number of turns that end (0: only the weight changes), and a description as for a turn,
-- with the weight given back (negative: taken) and the count of grants of each leg.
if not redis.call('SET', KEYS[1], '1', 'NX', 'PX', 60000) then return {1} end
local start, ends, legs = ARGV[1], tonumber(ARGV[2]), describe(ARGV[3])

-- leave takes a turn out of a strict window, or what it weighed more into it: no more than
-- fills the window.
local function leave(r, list, weight)
  if weight > 0 then redis.call('LREM', list, -weight, start) end
  for _ = 1, min(-weight, r[TURNS]) do redis.call('RPUSH', list, string.format('%.0f', NOW)) end
  redis.call('LTRIM', list, -r[TURNS], -1)
  lasts(r, list)
  if r[NEXT] == tonumber(start) + floor(r[PER] / r[TURNS]) * weight then r[NEXT] = tonumber(start) end
end

local k = 2
for _ = 1, legs do
  local s, weight, grant = load(KEYS[k]), word(), word()
  rates(s)
  k = k + 1
  refresh(s)
  if ends > 0 and s.cap > 0 and grant > s.base then s.upto = s.upto + ends end
  for i = 1, s.asked do
    local r = s.rates[i]
    if r[BURST] > 0 and grant > s.drained then
      local from = max(NOW, r[AT])
      r[LEVEL], r[AT] = min(r[BURST] * ONE, level(s, r, from) + weight * ONE), from
    end
    if r[STRICT] == 1 then
      if group(r) == 1 then leave(r, KEYS[k], weight) end
      k = k + 1
    end
  end
  if s.n > 0 then save(s) end
end
return {0}
