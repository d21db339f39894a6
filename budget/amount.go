package budget

// Amount is an amount of money (or of calls) in 10^-9 of its unit.
type Amount int64

// Unit is one whole unit: 50*budget.Unit is 50 dollars, or 50 calls.
const Unit Amount = 1e9
