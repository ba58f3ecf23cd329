package scale

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Processors is how many seconds of processors the servers have used that this process started, and what they started: what a measurement costs, whoever else is on the machine.
func Processors() float64 {
	parent, used := map[string]string{}, map[string]float64{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		process := filepath.Base(filepath.Dir(name))
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // from the state on
		if len(fields) < 15 {
			continue
		}
		parent[process] = fields[1]
		for _, field := range fields[11:13] {
			const ticks = 100 // a second, for whoever reads /proc
			x, _ := strconv.ParseFloat(field, 64)
			used[process] += x / ticks
		}
	}
	own, total := strconv.Itoa(os.Getpid()), 0.0
	for process := range parent {
		for p := parent[process]; p != ""; p = parent[p] {
			if p == own {
				total += used[process]
				break
			}
		}
	}
	return total
}
