-- Hold takes the amounts of all legs or changes nothing.
--
-- KEYS: generation, writes, owners, holds of this owner, frozen, hold, index; per leg the
-- account, the windows that count, the charged one last, and its tally.
-- ARGV: generation, writes, owner, milliseconds that an owner is alive, id, contents,
-- windows, provider, expiry of the hold, critical, restore, legs; per leg as read below.
local LEG = 11
local critical, restore, legs = ARGV[10] == '1', ARGV[11] == '1', tonumber(ARGV[12])

local stop = guard()
if stop then return stop end
local known = redis.call('HMGET', KEYS[6], 'legs', 'abandoned', 'state', 'amount', 'corrected')
if known[1] then
  if known[1] ~= ARGV[6] or known[2] then return {'conflict'} end
  return {'known', NOW, known[5] and 's' or known[3], known[5] or known[4] or '0'}
end

local fields = {'p' .. ARGV[8]}
for i = 1, legs do fields[i + 1] = 'b' .. ARGV[13 + (i - 1) * LEG] end
local frozen = redis.call('HMGET', KEYS[5], unpack(fields))
for i = 1, legs + 1 do
  if frozen[i] and not restore then return {'frozen', i - 1, frozen[i]} end
end
if legs == 0 then return {'ok', '0', NOW, {}} end
if LEARNING > 0 and not restore then return {'learning', LEARNING, NOW} end

local plan, k, refusals, noted, near = {}, 8, {}, {}, 0
for i = 1, legs do
  local a = 13 + (i - 1) * LEG
  local leg = {
    name = ARGV[a], held = num(ARGV[a + 1]), unit = ARGV[a + 2], keep = num(ARGV[a + 3]), monitor = ARGV[a + 4] == '1',
    cur = ARGV[a + 5], id = ARGV[a + 6], from = ARGV[a + 7], till = ARGV[a + 8], expires = ARGV[a + 9],
    windows = tonumber(ARGV[a + 10]), account = KEYS[k],
  }
  local acc = redis.call('HMGET', leg.account, 'what', 'limit', 'override', 'cur', 'from', 'till', 'alerts', 'since', 'buckets')
  if not acc[1] then return {'account', i - 1} end
  leg.key, leg.tally, leg.since = KEYS[k + leg.windows], KEYS[k + leg.windows + 1], acc[8]
  leg.window = window(leg.key)
  if not restore then
    if (acc[4] or '') ~= leg.cur then return {'current', i - 1, acc[4] or '', acc[5] or '0', acc[6] or '0'} end
    if leg.id ~= leg.cur and (NOW < tonumber(leg.from) - 5000 or NOW > tonumber(leg.till) + 5000) then return {'time', NOW} end
    local function vanished(id)
      return {'vanished', i - 1, redis.call('HEXISTS', KEYS[1], 'gone:' .. leg.name .. ':' .. id), id}
    end
    if leg.id == leg.cur and not leg.window.exists then return vanished(leg.id) end
    local sum, seen, fired = used(leg.window), {}, leg.window.fired
    for j = 1, leg.windows - 1 do
      local w = redis.call('HMGET', KEYS[k + j], 's', 'p', 'h', 'fired')
      local id = string.sub(KEYS[k + j], -ID)
      if not w[1] and acc[9] and string.find(acc[9], id, 1, true) then return vanished(id) end
      sum = add(sum, add(num(w[1]), add(num(w[2]), num(w[3]))))
      fired = math.max(fired, tonumber(w[4] or '0'))
      for f = 1, 3 do seen[#seen + 1] = w[f] or '0' end
    end
    local limit = acc[3] or acc[2]
    local top = num(limit)
    if not critical then top = sub(top, leg.keep) end
    local after = add(sum, leg.held)
    local fits = (leg.held[1] == 0 and leg.held[2] == 0) or not less(top, after)
    for percent in string.gmatch(acc[7] or '', '%d+') do
      local p = tonumber(percent)
      if p > fired and not less(times(after, 100), times(num(limit), p)) then near = 1 end
    end
    if (fits or leg.monitor) and less(MOST, after) then return {'overflow', i - 1} end
    if not fits then
      for _, v in ipairs({str(leg.window.s), str(leg.window.p), str(leg.window.h)}) do seen[#seen + 1] = v end
      local list = leg.monitor and noted or refusals
      list[#list + 1] = {i - 1, limit, unpack(seen)}
    end
  end
  plan[i] = leg
  k = k + 2 + leg.windows
end
if #refusals > 0 then return {'refused', NOW, refusals} end

local own, told = {}, ''
redis.call('ZADD', KEYS[4], MICROS, ARGV[5])
if redis.call('PTTL', KEYS[4]) < 0 then redis.call('PEXPIRE', KEYS[4], 34560000000) end -- 400 days
redis.call('ZADD', KEYS[3], 'NX', NOW + tonumber(ARGV[4]), ARGV[3])
redis.call('HSET', KEYS[6], 'legs', ARGV[6], 'windows', ARGV[7], 'state', 'h', 'at', string.format('%.0f', MICROS), 'owner', ARGV[3])
redis.call('PEXPIREAT', KEYS[6], ARGV[9])
for i, leg in ipairs(plan) do
  count(leg.window, add, leg.held, leg.unit, 'h', ZERO)
  leg.window.own = add(leg.window.own, leg.held)
  if not leg.window.exists then
    index(KEYS[7], leg.name, leg.id, leg.from, leg.till, leg.expires)
    charged(leg.account, leg.id)
  end
  told = told .. (leg.since and taken(leg.tally, ARGV[8], leg.held, ARGV[9]) or '0')
  save(leg.key, leg.window, leg.expires)
  if leg.id ~= leg.cur and not (restore and leg.id < leg.cur) then
    redis.call('HSET', leg.account, 'cur', leg.id, 'from', leg.from, 'till', leg.till)
    redis.call('PEXPIREAT', leg.account, leg.expires)
  end
  own[i] = str(leg.window.own)
end
if string.find(told, '1', 1, true) then redis.call('HSET', KEYS[6], 'told', told) end
return {'ok', redis.call('HINCRBY', KEYS[2], 'n', 1), NOW, own, noted, near}
