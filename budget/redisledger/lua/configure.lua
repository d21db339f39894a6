-- Configure makes the account of a budget, or takes over what is configured anew.
-- KEYS: account, log, watched, frozen. ARGV: what it is (unit, period, zone), limit, label, alerts, name,
-- and 1 if it was configured before, and only a loss of the account is made good.
local acc = redis.call('HMGET', KEYS[1], 'what', 'limit', 'label', 'alerts', 'cur', 'from', 'till')
if acc[1] and acc[1] ~= ARGV[1] then return {'conflict', acc[1]} end
local told, was, again = 0, '0', acc[1] and ARGV[6] == '1'
if acc[1] and acc[2] ~= ARGV[2] and not again then
  told, was = 1, redis.call('HGET', KEYS[1], 'override') or acc[2]
  redis.call('HDEL', KEYS[1], 'override')
  redis.call('HDEL', KEYS[4], 'l' .. ARGV[5])
  redis.call('XADD', KEYS[2], 'MAXLEN', '~', 10000, '*', 'what', 'configured', 'budget', ARGV[3], 'from', was, 'to', ARGV[2])
end
if not again and (not acc[1] or told == 1 or acc[3] ~= ARGV[3] or acc[4] ~= ARGV[4]) then
  redis.call('HSET', KEYS[1], 'what', ARGV[1], 'limit', ARGV[2], 'label', ARGV[3], 'alerts', ARGV[4])
end
if not acc[1] then
  setAgain(KEYS[4], KEYS[1], ARGV[5], ARGV[2])
  local since = redis.call('HGET', KEYS[3], ARGV[5])
  if since then
    redis.call('HSET', KEYS[1], 'since', since)
    redis.call('HDEL', KEYS[3], ARGV[5])
  end
end
if redis.call('PTTL', KEYS[1]) < 0 then redis.call('PEXPIRE', KEYS[1], 34560000000) end -- 400 days
return {'ok', told, acc[5] or '', acc[6] or '0', acc[7] or '0', NOW, was}
