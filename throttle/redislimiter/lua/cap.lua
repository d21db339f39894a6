-- Cap tightens what a scope may do, and tells all processes of a gate.
--
-- KEYS: scope. ARGV: what (cap, slow, reopen), turns left, microseconds that it lasts,
-- grants that it counts from ('': from now), cause, channel, name of the scope, sender.
local what, n, lasts = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local s = load(KEYS[1])
refresh(s)
local told
if what == 'reopen' then
  local shut = s.gate > 0 or (s.cap > 0 and s.n >= s.upto)
  s.gate, s.cause, s.cap, s.upto, s.base, s.told = 0, '', 0, 0, 0, 0
  if shut then open(s, NOW) end
  told = 'reopen 0'
end
if what == 'slow' then
  s.slow, s.slowed = max(10000, floor(factor(s, NOW) * 7 / 10)), NOW
  told = 'slow 0'
end
if what == 'cap' and n == 0 then
  if NOW + lasts > s.gate then s.gate, s.cause = NOW + lasts, ARGV[5] end
  told = string.format('gate %.0f', s.gate - NOW)
elseif what == 'cap' then
  local base = ARGV[4] == '' and s.n or tonumber(ARGV[4])
  local ends, upto = NOW + lasts, base + n
  -- The answer to a turn after the old cap was told, for a window that ends later, is the
  -- newer word: a window that slides would else keep its first count for ever.
  if s.cap == 0 or (ARGV[4] ~= '' and base > s.told and ends > s.cap) then
    s.cap, s.upto, s.base, s.told = ends, upto, base, s.n
  elseif math.abs(s.cap - ends) <= 2 * SECOND then
    if upto < s.upto then s.upto, s.base = upto, base end
    s.cap = max(s.cap, ends)
  elseif max(0, upto - s.n) * (s.cap - NOW) < max(0, s.upto - s.n) * (ends - NOW) then
    s.cap, s.upto, s.base, s.told = ends, upto, base, s.n
  end
  if s.n >= s.upto then told = string.format('gate %.0f', s.cap - NOW) end
end
save(s)
local cause = ARGV[5] == '' and '-' or ARGV[5]
if told then redis.call('PUBLISH', ARGV[6], ARGV[8] .. ' ' .. told .. ' ' .. cause .. ' ' .. ARGV[7]) end
return {0}
