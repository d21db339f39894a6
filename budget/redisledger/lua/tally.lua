-- What is remembered of a window whose budget somebody asked for, beside its totals: one hash,
-- by provider the calls taken (c), ended (e) and voided (v), the amounts held (h), settled (s)
-- and presumed (p), the least of those (f), calls without evidence (u), and what corrections
-- raised (r) and lowered (d); and what each part of the window settled (S) and presumed (P).
-- Nobody (the empty provider) has what is not told there. Should it be of no use, for it is
-- not the books, these go on.
local PARTS, PROVIDERS = 96, 64

local function bump(key, field, by)
  if by[1] ~= 0 or by[2] ~= 0 then redis.pcall('HINCRBY', key, field, str(by)) end
end

local function keep(key, expires)
  if redis.pcall('PTTL', key) == -1 then redis.pcall('PEXPIREAT', key, expires) end
end

-- taken counts a hold, and says whether it is its provider's: beyond the 64th it is nobody's.
local function taken(key, provider, held, expires)
  if provider == '' then return '0' end
  local calls = redis.pcall('HINCRBY', key, 'c' .. provider, 1)
  if calls == 1 and redis.pcall('HINCRBY', key, '#', 1) == PROVIDERS + 1 then
    redis.pcall('HINCRBY', key, '#', -1)
    redis.pcall('HDEL', key, 'c' .. provider)
    return '0'
  end
  bump(key, 'h' .. provider, held)
  keep(key, expires)
  return '1'
end

-- part is that of a leg's window in which it is now, if its period has parts.
local function part(leg)
  if leg.windows > 1 then return nil end
  local from, till = tonumber(leg.from or '0'), tonumber(leg.till or '0')
  if leg.id ~= leg.cur or from >= till then return PARTS - 1 end
  return math.max(0, math.min(PARTS - 1, math.floor((NOW - from) * PARTS / (till - from))))
end

-- tell counts what ends a hold or corrects its cost.
local function tell(leg, provider, was, wasAmount, is, isAmount)
  local key, before, after = leg.tally, leg.before, leg.after
  local function one(state) return (is == state and 1 or 0) - (was == state and 1 or 0) end
  local function by(state, a, b)
    return sub(is == state and b or ZERO, was == state and a or ZERO)
  end
  local function count(kind, n) if n ~= 0 then redis.pcall('HINCRBY', key, kind .. provider, n) end end
  local settled, presumed = by('s', before, after), by('p', before, after)
  if was == 'h' then count('e', 1) end
  count('v', one('v'))
  if provider ~= '' then
    bump(key, 'h' .. provider, by('h', leg.held, ZERO))
    bump(key, 's' .. provider, settled)
    bump(key, 'p' .. provider, presumed)
    if leg.unit ~= 'c' then bump(key, 'f' .. provider, by('p', wasAmount, isAmount)) end
    count('u', one('p'))
  end
  if was ~= 'h' then
    local change = sub(after, before)
    if less(change, ZERO) then bump(key, 'd' .. provider, sub(ZERO, change)) else bump(key, 'r' .. provider, change) end
  end
  local i = part(leg)
  if i then
    bump(key, 'S' .. i, settled)
    bump(key, 'P' .. i, presumed)
  end
  keep(key, string.format('%.0f', leg.ends + 3024000000)) -- 35 days
end
