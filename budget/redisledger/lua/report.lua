-- Report adds to a window what an instance spent there and the store has lost.
-- KEYS: generation, writes, account, window, index. ARGV: generation, writes, instance, its
-- total, the part of it that is held, holds, window, from, till, expiry, name of the budget.
local stop = guard()
if stop then return stop end
local w, total = window(KEYS[4]), num(ARGV[4])
if not less(w.own, total) then return {'ok', '0'} end
local lost = sub(total, w.own)
if not w.reported then -- nothing of it is there, not even what is in flight
  w.h, w.open = add(w.h, num(ARGV[5])), w.open + tonumber(ARGV[6])
  lost = sub(lost, num(ARGV[5]))
end
w.s, w.own = add(w.s, larger(ZERO, lost)), total
save(KEYS[4], w, ARGV[10])
if not w.exists then
  index(KEYS[5], ARGV[11], ARGV[7], ARGV[8], ARGV[9], ARGV[10])
  charged(KEYS[3], ARGV[7])
end
if (redis.call('HGET', KEYS[3], 'cur') or '') < ARGV[7] then
  redis.call('HSET', KEYS[3], 'cur', ARGV[7], 'from', ARGV[8], 'till', ARGV[9])
end
return {'ok', redis.call('HINCRBY', KEYS[2], 'n', 1)}
