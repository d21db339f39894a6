-- Totals reads one window of one budget.
-- KEYS: account, frozen, and the windows that count. ARGV: name.
local acc = redis.call('HMGET', KEYS[1], 'what', 'limit', 'override', 't', 't1', 'n1', 'b1', 't2', 'n2', 'b2', 't3', 'n3', 'b3', 'label', 'alerts')
local frozen = redis.call('HGET', KEYS[2], 'b' .. ARGV[1])
local sums = {}
for j = 3, #KEYS do
  sums[#sums + 1] = redis.call('HMGET', KEYS[j], 's', 'p', 'h', 'over', 'floor', 'open', 'unknown')
end
return {acc, frozen or '', sums}
