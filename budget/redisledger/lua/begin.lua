-- Begin finds the generation of the books, or begins one: the first ever, or the one after
-- a loss. What is found is a later one only if it knows of what the caller knew; else it is
-- of an earlier life, which a replica or a file has brought back, and lost as well.
-- KEYS: generation. ARGV: new id, id that was lost ('': none), milliseconds in which
-- nothing is granted, secret, why, budget and window that vanished ('': none), 1 if the
-- secret is the one before the loss.
local g = redis.call('HMGET', KEYS[1], 'app', 'id', 'key', 'learn', 'was:' .. ARGV[2])
if g[1] and g[1] ~= 'outlay ledger 1' then return {'foreign', g[1]} end
if not g[1] and redis.call('EXISTS', KEYS[1]) == 1 then return {'foreign', 'another program'} end
if g[2] and g[2] ~= ARGV[2] and (ARGV[2] == '' or g[5]) then return {'known', g[2], g[3], NOW, g[4]} end
local secret = ARGV[7] ~= '1' and g[3] or ARGV[4]
redis.call('HSET', KEYS[1], 'app', 'outlay ledger 1', 'id', ARGV[1], 'key', secret, 'learn', NOW + tonumber(ARGV[3]), 'for', ARGV[3], 'why', ARGV[5])
for _, id in ipairs({ARGV[2], g[2] or ''}) do
  if id ~= '' then redis.call('HSET', KEYS[1], 'was:' .. id, 1) end
end
if ARGV[6] ~= '' then redis.call('HSET', KEYS[1], 'gone:' .. ARGV[6], 1) end
return {'new', ARGV[1], secret, NOW, NOW + tonumber(ARGV[3])}
