-- Back gives turns back that were not used, or takes what one weighed more.
--
-- KEYS: a note that this was done; per leg as for a turn. ARGV: when they started, the
-- number of turns that end (0: only the weight changes), legs; per leg the weight given
-- back (negative: taken), the count of grants, and the rates as for a turn.
if not redis.call('SET', KEYS[1], '1', 'NX', 'PX', 60000) then return {'again'} end
local start, ends, legs = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local a, k = 4, 2
for _ = 1, legs do
  local key, weight, grant = KEYS[k], tonumber(ARGV[a]), tonumber(ARGV[a + 1])
  local rates
  rates, a, k = read(a + 2, k + 1)
  local s = load(key, rates)
  if s.known then
    refresh(s)
    if ends > 0 and s.cap > 0 and grant > s.base then s.upto = s.upto + ends end
    for _, r in ipairs(rates) do
      if r.burst > 0 and grant > s.drained then
        local at = math.max(NOW, r.at)
        r.level, r.at = math.min(r.burst * ONE, level(s, r, at) + weight * ONE), at
      end
      if r.strict and group(r) == 1 then
        if weight > 0 then redis.call('LREM', r.list, -weight, start) end
        for _ = 1, -weight do redis.call('RPUSH', r.list, put(NOW)) end
        if r.next == tonumber(start) + math.floor(r.per / r.n) * weight then r.next = tonumber(start) end
      end
    end
    save(s)
  end
end
return {'ok'}
