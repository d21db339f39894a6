package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// figures are all measurements: by name of the benchmark, then by unit, one a pass.
type figures map[string]map[string][]float64

// add takes a line of a benchmark's output and returns the benchmark's name, or nothing
// if the line is none.
func (f figures) add(line string) string {
	words := strings.Fields(line)
	if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
		return ""
	}
	name := strings.TrimPrefix(words[0], "Benchmark")
	if f[name] == nil {
		f[name] = map[string][]float64{}
	}
	for i := 2; i+1 < len(words); i += 2 {
		if v, err := strconv.ParseFloat(words[i], 64); err == nil {
			f[name][words[i+1]] = append(f[name][words[i+1]], v)
		}
	}
	return words[0]
}

// median is the middle of the passes; ok is false for what was not measured.
func (f figures) median(name, unit string) (v float64, ok bool) {
	all := slices.Sorted(slices.Values(f[name][unit]))
	if len(all) == 0 {
		return 0, false
	}
	return all[len(all)/2], true
}

// unit is what a benchmark's time is told in.
func (f figures) unit(name string) string {
	if len(f[name]["cpu-ns/op"]) > 0 {
		return "cpu-ns/op"
	}
	return "ns/op"
}

// print lists every benchmark with its spread and its ratio to outlay's in the same group.
func (f figures) print(w io.Writer) {
	fmt.Fprintf(w, "%-40s %10s %21s %8s %8s %7s\n", "benchmark", "median", "lowest … highest", "x outlay", "B/op", "allocs")
	for _, name := range slices.Sorted(maps.Keys(f)) {
		unit := f.unit(name)
		v, _ := f.median(name, unit)
		all := f[name][unit]
		ratio := ""
		if ours, ok := f.median(name[:strings.LastIndex(name, "/")+1]+"outlay", unit); ok {
			ratio = fmt.Sprintf("%.2f", v/ours)
		}
		bytes, _ := f.median(name, "B/op")
		allocs, _ := f.median(name, "allocs/op")
		fmt.Fprintf(w, "%-40s %10s %10s … %8s %8s %8.0f %7.0f", name, span(v), span(slices.Min(all)), span(slices.Max(all)), ratio, bytes, allocs)
		for _, extra := range []string{"of-rate", "most/100ms"} {
			if v, ok := f.median(name, extra); ok {
				fmt.Fprintf(w, " %.4g %s", v, extra)
			}
		}
		fmt.Fprintln(w)
	}
}

// span writes nanoseconds with the unit that suits them.
func span(ns float64) string {
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 1e4:
		return fmt.Sprintf("%.1f us", ns/1e3)
	case ns < 1e6:
		return fmt.Sprintf("%.0f us", ns/1e3)
	default:
		return fmt.Sprintf("%.1f ms", ns/1e6)
	}
}
