-- Begin finds the generation of the books, or begins one: the first ever, or, if ARGV[2]
-- is what the caller knew, the one after a loss.
-- KEYS: generation. ARGV: new id, id that was lost ('': none), milliseconds in which
-- nothing is granted, new secret, why, budget and window that vanished ('': none).
local g = redis.call('HMGET', KEYS[1], 'app', 'id', 'key', 'learn')
if g[1] and g[1] ~= 'outlay ledger 1' then return {'foreign', g[1]} end
if not g[1] and redis.call('EXISTS', KEYS[1]) == 1 then return {'foreign', 'another program'} end
if g[2] and g[2] ~= ARGV[2] then return {'known', g[2], g[3], NOW, g[4]} end
redis.call('HSET', KEYS[1], 'app', 'outlay ledger 1', 'id', ARGV[1], 'key', g[3] or ARGV[4], 'learn', NOW + tonumber(ARGV[3]), 'why', ARGV[5])
if ARGV[6] ~= '' then redis.call('HSET', KEYS[1], 'gone:' .. ARGV[6], 1) end
return {'new', ARGV[1], g[3] or ARGV[4], NOW, NOW + tonumber(ARGV[3])}
