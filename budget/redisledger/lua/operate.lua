-- Operate does what people do, and tells it in the log if it changed something.
-- KEYS: log, frozen, generation, account.
-- ARGV: limit, freeze or release; field of frozen or new limit; who; why; name.
local what, arg = ARGV[1], ARGV[2]
local acc = redis.call('HMGET', KEYS[4], 'limit', 'override', 'label', 'cur')
local target, name, from, to, changed = 'budget', acc[3] or ARGV[5], '', '', false
if what == 'limit' then
  if not acc[1] then return {'unknown'} end
  from, to, changed = acc[2] or acc[1], arg, true
  if acc[1] == arg then redis.call('HDEL', KEYS[4], 'override') else redis.call('HSET', KEYS[4], 'override', arg) end
else
  if string.sub(arg, 1, 1) == 'p' then target, name = 'provider', ARGV[5] end
  if what == 'freeze' then
    changed = redis.call('HSETNX', KEYS[2], arg, NOW) == 1
  else
    changed = redis.call('HDEL', KEYS[2], arg) == 1
    -- A window that vanished begins anew: a person has looked.
    if target == 'budget' and acc[4] and redis.call('HDEL', KEYS[3], 'gone:' .. ARGV[5] .. ':' .. acc[4]) == 1 then
      redis.call('HDEL', KEYS[4], 'cur', 'from', 'till')
      changed = true
    end
  end
end
if changed then
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', 10000, '*', 'what', what, target, name, 'from', from, 'to', to, 'who', ARGV[3], 'why', ARGV[4])
end
return {'ok'}
