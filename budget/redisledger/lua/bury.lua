-- Bury forgets an owner without holds that is dead, or says so.
-- KEYS: owners, holds of the owner, its writes. ARGV: owner, 1 if it says so.
local alive = redis.call('ZSCORE', KEYS[1], ARGV[1])
if alive and (ARGV[2] == '1' or tonumber(alive) <= NOW) and redis.call('ZCARD', KEYS[2]) == 0 then
  redis.call('ZREM', KEYS[1], ARGV[1])
  redis.call('PEXPIRE', KEYS[3], 86400000)
end
return {'ok'}
