package view

import (
	"strings"

	"github.com/openpai/paictl/pkg/status"
)

// screenName is the name of a screen, and other words that open the screen.
type screenName struct {
	name, short string
	words       []string
	open        func() page
}

// screenNames lists the screens. Users open a screen by number or by name.
var screenNames = [8]screenName{
	{"Overview", "Overview", []string{"overview", "home"}, newOverview},
	{"Machines", "Machines", []string{"machines", "nodes", "hosts"}, newMachines},
	{"GPUs", "GPUs", []string{"gpus", "heat"}, newHeat},
	{"Virtual clusters", "VCs", []string{"vcs", "virtual clusters", "queues"}, newVirtualClusters},
	{"Services", "Services", []string{"services"}, newServices},
	{"Jobs", "Jobs", []string{"jobs"}, func() page { return newJobs("jobs", nil) }},
	{"Alerts", "Alerts", []string{"alerts"}, newAlerts},
	{"Events", "Events", []string{"events"}, newEvents},
}

// place is a target of a jump.
type place struct {
	name, kind string
	screen     int // 0 to 7, the page that open leads to, or -1
	open       func(d *env) effect
}

const placesShown = 6

// places returns the screens and objects whose names match text. Screens come first. Names that begin with text come
// before names that contain text, and newer jobs come before older jobs.
func places(c *status.Cluster, text string) []place {
	text = strings.ToLower(strings.TrimSpace(text))
	var first, rest []place
	for i, s := range screenNames {
		for _, w := range s.words {
			if strings.HasPrefix(w, text) {
				first = append(first, place{name: s.words[0], kind: "screen", screen: i})
				break
			}
		}
	}
	if text == "" || c == nil {
		return first
	}
	add := func(kind, name string, open func(d *env) effect) bool {
		l := strings.ToLower(name)
		switch {
		case strings.HasPrefix(l, text):
			first = append(first, place{name, kind, -1, open})
		case strings.Contains(l, text) && len(rest) < placesShown:
			rest = append(rest, place{name, kind, -1, open})
		}
		return len(first) < placesShown
	}
	for i := range c.VirtualClusters {
		n := c.VirtualClusters[i].Name
		if !add("virtual cluster", n, func(*env) effect { return effect{push: newVirtualCluster(n)} }) {
			return first
		}
	}
	for i := range c.Services {
		n := c.Services[i].Name
		if !add("service", n, func(*env) effect { return effect{push: newService(n)} }) {
			return first
		}
	}
	for i := range c.Machines {
		n := c.Machines[i].Name
		if !add("machine", n, func(*env) effect { return effect{push: newMachine(n)} }) {
			return first
		}
	}
	for _, j := range c.Jobs {
		if !add("job", j.Title(), func(*env) effect { return effect{push: newJob(j)} }) {
			return first
		}
	}
	first = append(first, rest...)
	return first[:min(len(first), placesShown)]
}
