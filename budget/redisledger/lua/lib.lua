-- Amounts are int64, and a number of Lua is a double, exact to 2^53 only. So an amount
-- travels as a decimal string and is counted as a pair {hi, lo} with
-- amount = hi * 10^9 + lo and 0 <= lo < 10^9.
local BASE = 1000000000

-- Most amounts are whole in a double.
local SHORT, FEW = 15, 1000000

local function num(s)
  if not s or s == '' then return {0, 0} end
  if #s <= SHORT then
    local n = s + 0
    local hi = math.floor(n / BASE)
    return {hi, n - hi * BASE}
  end
  local sign, digits = string.match(s, '^(%-?)(%d+)$')
  local hi, lo = 0, tonumber(string.sub(digits, -9))
  if #digits > 9 then hi = tonumber(string.sub(digits, 1, -10)) end
  if sign == '' then return {hi, lo} end
  if lo == 0 then return {-hi, 0} end
  return {-hi - 1, BASE - lo}
end

local function str(a)
  local hi, lo, sign = a[1], a[2], ''
  if hi > -FEW and hi < FEW then return string.format('%.0f', hi * BASE + lo) end
  if hi < 0 then
    sign, hi = '-', -hi
    if lo > 0 then hi, lo = hi - 1, BASE - lo end
  end
  return sign .. string.format('%.0f%09.0f', hi, lo)
end

local function add(a, b)
  local hi, lo = a[1] + b[1], a[2] + b[2]
  if lo >= BASE then hi, lo = hi + 1, lo - BASE end
  return {hi, lo}
end

local function sub(a, b)
  local hi, lo = a[1] - b[1], a[2] - b[2]
  if lo < 0 then hi, lo = hi - 1, lo + BASE end
  return {hi, lo}
end

local function less(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end

local function larger(a, b) if less(a, b) then return b end return a end

-- times multiplies by a small whole number.
local function times(a, k)
  local lo = a[2] * k
  local carry = math.floor(lo / BASE)
  return {a[1] * k + carry, lo - carry * BASE}
end

local ZERO, MOST = {0, 0}, num('9223372036854775807')

local TIME = redis.call('TIME')
local MICROS = tonumber(TIME[1]) * 1000000 + tonumber(TIME[2])
local NOW = math.floor(MICROS / 1000)

-- guard looks whether the books are the ones that the caller knows: KEYS[1] names
-- their generation, KEYS[2] counts the caller's writes, and a count that went back
-- means that the store lost some. ARGV[1] is the generation, ARGV[2] the count that the
-- caller knows of, ARGV[3] the caller.
local LEARNING = 0
local function guard()
  local g = redis.call('HMGET', KEYS[1], 'id', 'learn', 'for')
  if g[1] ~= ARGV[1] then return {'generation'} end
  LEARNING = tonumber(g[2]) - NOW
  if g[3] and LEARNING > tonumber(g[3]) then -- the clock was set back
    LEARNING = tonumber(g[3])
    redis.call('HSET', KEYS[1], 'learn', NOW + LEARNING)
  end
  if tonumber(redis.call('HGET', KEYS[2], 'n') or '0') < tonumber(ARGV[2]) then return {'lost'} end
end

-- The fields of a window; own is what the caller itself has used of it.
local function window(key)
  local w = redis.call('HMGET', key, 's', 'p', 'h', 'over', 'floor', 'open', 'unknown', 'fired', 'o' .. ARGV[3])
  return {
    exists = w[1] and true or false,
    s = num(w[1]), p = num(w[2]), h = num(w[3]), over = num(w[4]), floor = num(w[5]),
    open = tonumber(w[6] or '0'), unknown = tonumber(w[7] or '0'), fired = tonumber(w[8] or '0'),
    own = num(w[9]), reported = w[9] and true or false,
  }
end

local function save(key, w, expires)
  redis.call('HSET', key, 's', str(w.s), 'p', str(w.p), 'h', str(w.h), 'over', str(w.over), 'floor', str(w.floor),
    'open', w.open, 'unknown', w.unknown, 'fired', w.fired, 'o' .. ARGV[3], str(w.own))
  if not w.exists then redis.call('PEXPIREAT', key, expires) end
end

-- cost is what a leg counts for by an outcome: v is voided, p presumed, s settled.
local function cost(held, unit, state, amount)
  if state == 'v' then return ZERO end
  if unit == 'c' then return held end
  if state == 'p' then return larger(held, amount) end
  return amount
end

-- count adds to a window what a leg counts for in a state (or takes it away, if sign
-- is sub); h is held.
local function count(w, sign, held, unit, state, amount)
  local one = sign == add and 1 or -1
  if state == 'h' then
    w.h, w.open = sign(w.h, held), w.open + one
    return
  end
  local c = cost(held, unit, state, amount)
  w.over = sign(w.over, larger(ZERO, sub(c, held)))
  if state == 'p' then
    w.p, w.unknown = sign(w.p, c), w.unknown + one
    if unit ~= 'c' then w.floor = sign(w.floor, amount) end
  else
    w.s = sign(w.s, c)
  end
end

-- setAgain gives an account the limit that people set, unless another one is configured
-- since. The key of what is frozen keeps it beside the account.
local function setAgain(frozen, account, name, configured)
  local limit, of = string.match(redis.call('HGET', frozen, 'l' .. name) or '', '^(%d+) (%d+)$')
  if of == configured then
    redis.call('HSET', account, 'override', limit)
  elseif of then
    redis.call('HDEL', frozen, 'l' .. name)
  end
end

-- The account of a rolling period lists its last buckets, so that one that vanished is told
-- from one that was never charged. Their ids are instants, and have one length.
local ID, BUCKETS = 20, 24
local function charged(account, id)
  if #id ~= ID or string.sub(id, -1) ~= 'Z' then return end
  local list = redis.call('HGET', account, 'buckets') or ''
  if string.find(list, id, 1, true) then return end
  redis.call('HSET', account, 'buckets', string.sub(list, -BUCKETS * (ID + 1)) .. id .. ' ')
end

local function used(w) return add(w.s, add(w.p, w.h)) end
