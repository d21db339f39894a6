-- Operate does what people do. KEYS: log, frozen, generation, account.
-- ARGV: limit, freeze or release; field of frozen or new limit; who; why; name.
local what, arg = ARGV[1], ARGV[2]
if what == 'limit' then
  local limit = redis.call('HGET', KEYS[4], 'limit')
  if not limit then return {'unknown'} end
  if limit == arg then redis.call('HDEL', KEYS[4], 'override') else redis.call('HSET', KEYS[4], 'override', arg) end
elseif what == 'freeze' then
  redis.call('HSETNX', KEYS[2], arg, NOW)
else
  redis.call('HDEL', KEYS[2], arg)
  -- A window that vanished begins anew: a person has looked.
  local cur = redis.call('HGET', KEYS[4], 'cur')
  if cur and redis.call('HDEL', KEYS[3], 'gone:' .. ARGV[5] .. ':' .. cur) == 1 then
    redis.call('HDEL', KEYS[4], 'cur', 'from', 'till')
  end
end
redis.call('XADD', KEYS[1], 'MAXLEN', '~', 10000, '*', 'what', what, 'target', ARGV[5], 'value', arg, 'who', ARGV[3], 'why', ARGV[4])
return {'ok'}
