-- Operate does what people do, and tells it in the log if it changed something.
-- KEYS: log, frozen, generation, account.
-- ARGV: limit, freeze, release, or again for a limit that was lost; field of frozen, new limit,
-- or lost limit and what was configured; who; why; name. It returns what is kept of the limit.
local what, arg = ARGV[1], ARGV[2]
local acc = redis.call('HMGET', KEYS[4], 'limit', 'override', 'label', 'cur', 'buckets')
local target, name, from, to, changed = 'budget', acc[3] or ARGV[5], '', '', false
local kept = ''
if what == 'again' then
  if redis.call('HSETNX', KEYS[2], 'l' .. ARGV[5], arg) == 1 and acc[1] and not acc[2] then setAgain(KEYS[2], KEYS[4], ARGV[5], acc[1]) end
elseif what == 'limit' then
  if not acc[1] then return {'unknown'} end
  from, to, changed = acc[2] or acc[1], arg, true
  if acc[1] == arg then
    redis.call('HDEL', KEYS[4], 'override')
    redis.call('HDEL', KEYS[2], 'l' .. ARGV[5])
  else
    kept = arg .. ' ' .. acc[1]
    redis.call('HSET', KEYS[4], 'override', arg)
    redis.call('HSET', KEYS[2], 'l' .. ARGV[5], kept)
  end
else
  if string.sub(arg, 1, 1) == 'p' then target, name = 'provider', ARGV[5] end
  if what == 'freeze' then
    changed = redis.call('HSETNX', KEYS[2], arg, NOW) == 1
  else
    changed = redis.call('HDEL', KEYS[2], arg) == 1
    -- A window that vanished begins anew: a person has looked.
    for id in string.gmatch(target == 'budget' and (acc[5] or '') .. (acc[4] or '') or '', '%S+') do
      if redis.call('HDEL', KEYS[3], 'gone:' .. ARGV[5] .. ':' .. id) == 1 then
        redis.call('HDEL', KEYS[4], 'cur', 'from', 'till', 'buckets')
        changed = true
      end
    end
  end
end
if changed then
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', 10000, '*', 'what', what, target, name, 'from', from, 'to', to, 'who', ARGV[3], 'why', ARGV[4])
end
return {'ok', kept}
