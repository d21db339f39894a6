package budget_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/outlay-go/outlay/budget"
	"github.com/stretchr/testify/require"
)

func TestParseReadsDecimalsExactly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]budget.Amount{
		"0":                    0,
		"0.0":                  0,
		"50":                   50 * budget.Unit,
		"0.0083":               8_300_000,
		"00.5":                 500_000_000,
		"1.000000001":          1_000_000_001,
		"0.000000001":          1,
		"9223372036.854775807": math.MaxInt64,
	} {
		got, err := budget.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", " ", ".", "1.", ".5", "-1", "+1", "1e3", "1E3", "0x1", "1,5", "1_000", " 1", "1 ", "1\n", "NaN", "Inf",
		"1.2.3", "--1", "$1", "1 USD", "١", "1.0000000001", "0.0000000001", "9223372036.854775808", "9223372037",
		"99999999999999999999999999", "1.00000000000000000x", strings.Repeat("9", 10_000),
	} {
		_, err := budget.Parse(text)
		require.Error(t, err, text)
		require.Less(t, len(err.Error()), 250, "an error does not repeat endless input")
	}
}

func TestParseUpRoundsOnlyWhatIsBeyondNinePlaces(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]budget.Amount{
		"0.0000000001":                    1,
		"0.0000000000":                    0,
		"1.0000000000000000000000000001":  1_000_000_001,
		"1.23":                            1_230_000_000,
		"9223372036.8547758061":           math.MaxInt64,
		"0.00000015":                      150,
		"0.0000001500000000000000000000":  150,
		"0.00000015000000000000000000001": 151,
	} {
		got, err := budget.ParseUp(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"9223372036.8547758071", "-0.1", "1.0000000000e", "1.0000000000-1", ""} {
		_, err := budget.ParseUp(text)
		require.Error(t, err, text)
	}
}

func TestAmountsPrintWithoutLoss(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]budget.Amount{
		"0":                     0,
		"50":                    50 * budget.Unit,
		"0.0083":                8_300_000,
		"0.000000001":           1,
		"-0.000000001":          -1,
		"-1.5":                  -1_500_000_000,
		"100":                   100 * budget.Unit,
		"9223372036.854775807":  math.MaxInt64,
		"-9223372036.854775808": math.MinInt64,
	} {
		require.Equal(t, want, a.String())
	}
}

func TestAmountsInJSONAreDecimalStrings(t *testing.T) {
	t.Parallel()
	type row struct{ Cost budget.Amount }
	text, err := json.Marshal(row{Cost: budget.MustParse("0.0083")})
	require.NoError(t, err)
	require.JSONEq(t, `{"Cost":"0.0083"}`, string(text))

	for _, a := range []budget.Amount{0, 1, -1, 123456789012345678, math.MaxInt64, math.MinInt64} {
		text, err := json.Marshal(row{Cost: a})
		require.NoError(t, err)
		var back row
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, a, back.Cost)
	}
	for _, bad := range []string{`{"Cost":0.1}`, `{"Cost":"1e3"}`, `{"Cost":"--1"}`, `{"Cost":""}`, `{"Cost":"-"}`} {
		require.Error(t, json.Unmarshal([]byte(bad), new(row)), bad)
	}
}

func TestMustParsePanicsOnWhatParseRefuses(t *testing.T) {
	t.Parallel()
	require.Panics(t, func() { budget.MustParse("1.5 USD") })
}

func TestArithmeticIsChecked(t *testing.T) {
	t.Parallel()
	edges := []int64{0, 1, -1, 2, -2, 10, 1e9, -1e9, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64, math.MinInt64 + 1, 1 << 32, -(1 << 31)}
	for _, x := range edges {
		for _, y := range edges {
			a, b := big.NewInt(x), big.NewInt(y)
			checkExact(t, fmt.Sprintf("%d+%d", x, y), new(big.Int).Add(a, b))(budget.Amount(x).Add(budget.Amount(y)))
			checkExact(t, fmt.Sprintf("%d*%d", x, y), new(big.Int).Mul(a, b))(budget.Amount(x).Mul(y))
		}
	}
}

func checkExact(t *testing.T, what string, want *big.Int) func(budget.Amount, error) {
	return func(got budget.Amount, err error) {
		t.Helper()
		require.Equal(t, want.IsInt64(), err == nil, what)
		if err == nil {
			require.Equal(t, want.Int64(), int64(got), what)
		}
	}
}

func TestTenTimesTenCentsIsOneDollar(t *testing.T) {
	t.Parallel()
	var sum budget.Amount
	for range 10 {
		sum += budget.MustParse("0.1")
	}
	require.Equal(t, budget.Unit, sum)

	million, err := budget.MustParse("0.0079").Mul(1_000_000)
	require.NoError(t, err)
	require.Equal(t, "7900", million.String())

	tokens, err := budget.MustParse("0.00000015").Mul(1234)
	require.NoError(t, err)
	require.Equal(t, "0.0001851", tokens.String())
}

func FuzzAmount(f *testing.F) {
	for _, seed := range []string{"0", "0.0083", "50", "1.000000001", "9223372036.854775807", "9223372036.854775808", "-1", "1e9", ".", "", "0.0000000001"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		up, upErr := budget.ParseUp(text)
		a, err := budget.Parse(text)
		if err != nil {
			return
		}
		require.NoError(t, upErr)
		require.Equal(t, a, up, "what is exact is not rounded")
		require.GreaterOrEqual(t, a, budget.Amount(0))
		want, ok := new(big.Rat).SetString(text)
		require.True(t, ok, text)
		require.Zero(t, want.Mul(want, big.NewRat(1e9, 1)).Cmp(new(big.Rat).SetInt64(int64(a))), text)
		back, err := budget.Parse(a.String())
		require.NoError(t, err)
		require.Equal(t, a, back)
	})
}

func BenchmarkAmountString(b *testing.B) {
	a := budget.MustParse("0.0083")
	b.ReportAllocs()
	for b.Loop() {
		_ = a.String()
	}
}
