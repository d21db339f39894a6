-- Beat says that an owner is alive, and lists owners that are not, and what is frozen.
-- KEYS: generation, writes, owners, holds of this owner, presumed, frozen. ARGV: generation,
-- writes, owner, milliseconds that it is alive.
local stop = guard()
if stop then return stop end
local alive = NOW + tonumber(ARGV[4])
for _, owner in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. alive + 1000, '+inf', 'LIMIT', 0, 8)) do
  redis.call('ZADD', KEYS[3], alive, owner) -- the clock was set back
end
redis.call('ZADD', KEYS[3], alive, ARGV[3])
redis.call('HSETNX', KEYS[2], 'n', '0')
for _, key in ipairs({KEYS[2], KEYS[4], KEYS[5]}) do redis.call('PEXPIRE', key, 34560000000) end -- 400 days
return {'ok', NOW, redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', NOW, 'LIMIT', 0, 8), redis.call('HGETALL', KEYS[6])}
