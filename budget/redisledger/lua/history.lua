-- History reads how some windows of a budget came about, and has the budget remembered from
-- now on. KEYS: account, watched, the windows, and as many tallies. ARGV: name.
local n = (#KEYS - 2) / 2
local acc = redis.call('HMGET', KEYS[1], 'what', 'cur', 'from', 'till', 'since')
if acc[1] and not acc[5] then
  redis.call('HSET', KEYS[1], 'since', NOW)
  acc[5] = string.format('%.0f', NOW)
elseif not acc[1] and redis.call('HLEN', KEYS[2]) < 1024 then
  redis.call('HSETNX', KEYS[2], ARGV[1], NOW) -- configure.lua takes it over
  redis.call('PEXPIRE', KEYS[2], 34560000000) -- 400 days
end
local all = {}
for i = 3, 2 + n do
  all[#all + 1] = {redis.call('HMGET', KEYS[i], 's', 'p', 'h', 'floor', 'open', 'unknown'), redis.call('HGETALL', KEYS[i + n])}
end
return {acc, all}
