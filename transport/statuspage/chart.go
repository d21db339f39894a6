package statuspage

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// The drawing area of a chart, in its own units.
const (
	chartW, chartH = 720.0, 220.0
	plotT, plotB   = 14.0, 196.0 // top and bottom of the plot
)

// chart is one budget through its window, as numbers and paths of SVG.
type chart struct {
	ID                 int
	Name, Unit         string
	Title, Desc, Short string
	Zoom               string // why it shows less than the window; empty if it does not
	Settled, Presumed  string // filled paths
	Top                string // the line above them
	Held               *box
	LimitY             float64
	LimitLabel         string
	Pace, Forecast     string // paths; empty if there is none
	ForecastLabel      *label
	NowX               float64
	XTicks             []label
	YTicks             []label
	Rows               []row
}

type box struct{ X, Y, W, H float64 }

type label struct {
	X, Y   float64
	Anchor string
	Text   string
}

// row is a line of the table beside a chart.
type row struct {
	At                instant
	When              string
	Settled, Presumed string
}

// frame maps instants and amounts to the drawing.
type frame struct {
	from, to time.Time
	top      float64
}

func (f frame) x(t time.Time) float64 {
	return chartW * float64(t.Sub(f.from)) / float64(f.to.Sub(f.from))
}

func (f frame) y(a budget.Amount) float64 { return f.yf(float64(a)) }

func (f frame) yf(a float64) float64 { return plotB - (plotB-plotT)*min(max(a/f.top, 0), 1) }

// newChart draws a budget.
func newChart(b *budgetView, now time.Time, id int) chart {
	f, zoom := frameOf(b, now)
	c := chart{
		ID: id, Name: b.Name, Unit: b.Unit, Zoom: zoom, NowX: tenth(f.x(now)), LimitY: tenth(f.y(b.Limit)),
		LimitLabel: "limit " + money(b.Limit),
		Short:      fmt.Sprintf("%s of %s %s, %d %%: %s.", money(b.totals.Used()), money(b.Limit), b.Unit, b.Percent, b.Outlook),
		Title:      fmt.Sprintf("Budget %s, window %s", b.Name, b.Window.ID),
		Desc: fmt.Sprintf("%s of %s %s used (%d %%): settled %s, presumed %s, held %s. Forecast: %s.",
			money(b.totals.Used()), money(b.Limit), b.Unit, b.Percent, money(b.Settled), money(b.Presumed), money(b.Held), b.Outlook),
	}
	c.areas(b, f, now)
	c.marks(b, f, now)
	c.ticks(b, f)
	c.rows(b, now)
	return c
}

// frameOf is the whole window, or the time that was watched if that is a small part of it.
func frameOf(b *budgetView, now time.Time) (frame, string) {
	w := b.totals.Window
	f := frame{from: w.Start, to: w.End, top: 1.1 * float64(max(b.Limit, b.totals.Used(), 1))}
	if len(b.History.Points) == 0 {
		return f, ""
	}
	first := time.Time(b.History.Points[0].At)
	watched := now.Sub(first)
	if watched >= w.End.Sub(w.Start)/24 {
		return f, ""
	}
	f.from, f.to = first, first.Add(max(watched, 10*time.Second)*5/4)
	return f, fmt.Sprintf("Watched for %s; the window ends at %s.", span(watched), b.Ends)
}

// areas draws what is settled, and on top of it what is presumed, as steps.
func (c *chart) areas(b *budgetView, f frame, now time.Time) {
	points := b.History.Points
	if len(points) == 0 {
		return
	}
	var low, high []string
	step := func(path []string, x, y float64) []string {
		if len(path) > 0 {
			path = append(path, "H"+num(x))
		}
		if len(path) == 0 {
			return append(path, "M"+num(x)+" "+num(y))
		}
		return append(path, "V"+num(y))
	}
	lastLow, lastHigh := -1.0, -1.0
	for _, p := range points {
		x, yl, yh := f.x(time.Time(p.At)), f.y(p.Settled), f.y(p.Settled+p.Presumed)
		if tenth(yl) != lastLow {
			low = step(low, x, yl)
		}
		if tenth(yh) != lastHigh {
			high = step(high, x, yh)
		}
		lastLow, lastHigh = tenth(yl), tenth(yh)
	}
	end := num(f.x(now))
	start := num(f.x(time.Time(points[0].At)))
	base := num(plotB)
	low, high = append(low, "H"+end), append(high, "H"+end)
	c.Settled = strings.Join(low, "") + "V" + base + "H" + start + "Z"
	c.Top = strings.Join(high, "")
	if slices.ContainsFunc(points, func(p pointView) bool { return p.Presumed > 0 }) { // now, or before it was settled
		c.Presumed = c.Top + "V" + base + "H" + start + "Z"
	}
	if b.Held > 0 {
		y, bottom := f.y(b.totals.Used()), f.y(b.Settled+b.Presumed)
		c.Held = &box{tenth(f.x(now)), tenth(y), tenth(chartW - f.x(now)), tenth(max(bottom-y, 1))}
	}
}

// marks draws the pace that would just last, and where the present one leads.
func (c *chart) marks(b *budgetView, f frame, now time.Time) {
	w := b.totals.Window
	length := float64(w.End.Sub(w.Start))
	pace := func(t time.Time) float64 { return float64(b.Limit) * float64(t.Sub(w.Start)) / length }
	c.Pace = fmt.Sprintf("M0 %sL%s %s", num(f.yf(pace(f.from))), num(chartW), num(f.yf(pace(f.to))))
	if b.Forecast.State != "runs_out" {
		return
	}
	used, at := float64(b.totals.Used()), time.Time(b.Forecast.At)
	x, y := f.x(at), f.y(b.Limit)
	if x > chartW { // it leaves the drawing before it meets the limit
		part := float64(f.to.Sub(now)) / float64(at.Sub(now))
		x, y = chartW, f.yf(used+(float64(b.Limit)-used)*part)
	} else {
		anchor := "end"
		if x < chartW/2 {
			anchor = "start"
		}
		c.ForecastLabel = &label{tenth(x), tenth(y) + 30, anchor, b.Outlook}
	}
	c.Forecast = fmt.Sprintf("M%s %sL%s %s", num(f.x(now)), num(f.yf(used)), num(x), num(y))
}

// ticks labels the axes.
func (c *chart) ticks(b *budgetView, f frame) {
	length := f.to.Sub(f.from)
	format := "15:04:05"
	switch {
	case length > 48*time.Hour:
		format = "2 Jan"
	case length > 10*time.Minute:
		format = "15:04"
	}
	for i := range 5 {
		t := f.from.Add(length / 4 * time.Duration(i)).In(b.totals.Budget.Zone)
		c.XTicks = append(c.XTicks, label{tenth(chartW / 4 * float64(i)), 214, []string{"start", "middle", "middle", "middle", "end"}[i], t.Format(format)})
	}
	step := niceStep(b.Limit / 4)
	for a := step; a < b.Limit-b.Limit/10 && a > 0; a += step {
		c.YTicks = append(c.YTicks, label{2, tenth(f.y(a)), "start", money(a)})
	}
}

// niceStep is the next 1, 2 or 5 of a power of ten from a on, so that labels are short.
func niceStep(a budget.Amount) budget.Amount {
	for power := budget.Amount(1); power <= math.MaxInt64/50; power *= 10 {
		for _, n := range [...]budget.Amount{1, 2, 5} {
			if power*n >= a {
				return power * n
			}
		}
	}
	return a
}

// maxRows bounds the table beside a chart.
const maxRows = 12

// rows picks points evenly, the last one included.
func (c *chart) rows(b *budgetView, now time.Time) {
	points := b.History.Points
	n := min(len(points), maxRows)
	for i := range n {
		p := points[len(points)-1-(n-1-i)*(len(points)-1)/max(n-1, 1)]
		t := time.Time(p.At).In(b.totals.Budget.Zone)
		c.Rows = append(c.Rows, row{p.At, at(t, now), money(p.Settled), money(p.Presumed)})
	}
}

// sparkline is the last hour of a provider: bars for the longest queue of each minute, a
// line for the longest wait.
type sparkline struct{ Bars, Line, Desc string }

const sparkW, sparkH = 240, 32

func newSparkline(last [minutes]*minute) *sparkline {
	queue, wait := 0, time.Duration(0)
	for _, m := range last {
		if m != nil {
			queue, wait = max(queue, m.queue), max(wait, m.wait)
		}
	}
	if queue == 0 && wait < time.Millisecond {
		return nil
	}
	s := &sparkline{Desc: fmt.Sprintf("longest queue %d, longest wait %s", queue, span(wait))}
	var bars, line strings.Builder
	move := byte('M')
	for i, m := range last {
		x := i*sparkW/minutes + 2
		if m == nil {
			move = 'M'
			continue
		}
		if m.queue > 0 {
			fmt.Fprintf(&bars, "M%d %dV%d", x, sparkH, sparkH-max(2, m.queue*(sparkH-2)/queue))
		}
		if wait > 0 {
			fmt.Fprintf(&line, "%c%d %d", move, x, sparkH-1-int(int64(m.wait)*(sparkH-3)/int64(wait)))
			move = 'L'
		}
	}
	s.Bars, s.Line = bars.String(), line.String()
	return s
}

// tenth rounds to what can be seen.
func tenth(v float64) float64 { return math.Round(v*10) / 10 }

func num(v float64) string { return strconv.FormatFloat(tenth(v), 'f', -1, 64) }
