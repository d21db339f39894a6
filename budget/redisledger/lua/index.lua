-- index notes a window that is new, so that it can be listed while its totals are known. The
-- books go on without it.
local function index(key, name, id, from, till, expires)
  redis.pcall('ZADD', key, expires, from .. ' ' .. till .. ' ' .. id .. '\n' .. name)
  redis.pcall('ZREMRANGEBYSCORE', key, '-inf', NOW)
  redis.pcall('ZREMRANGEBYRANK', key, 0, -100001)
  redis.pcall('PEXPIRE', key, 43200000000) -- 500 days
end
