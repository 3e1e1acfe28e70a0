// Package doctor finds problems of a cluster's machines, Kubernetes, network, storage, services, GPUs and jobs. Each check is a value that
// describes its subject and its needs.
// In: connections to the machines and to the API, a configuration folder; each of these may be missing. Out: a Report with a remedy for each
// problem, and repairs for problems that can be repaired safely.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/diagnose/checks"
)

// Verdict is the judgement of a check.
type Verdict string

// Verdicts of checks.
const (
	OK      Verdict = "ok"
	Skipped Verdict = "skipped" // it could not be checked, or does not apply
	Warning Verdict = "warning" // it works, but someone should check it
	Problem Verdict = "problem" // it doesn't work, or won't for long
)

// rank returns a number that is higher for worse verdicts.
func (v Verdict) rank() int { return slices.Index([]Verdict{OK, Skipped, Warning, Problem}, v) }

// Need is a set of requirements of a check, such as the API server.
type Need int

// Needs of checks. A check whose needs aren't met is skipped. Its finding contains the reason.
const (
	Machines Need = 1 << iota // output of machines by SSH
	API                       // the API server
	Pods                      // pods of the doctor on the machines
	Folder                    // a configuration folder
	Managed                   // a folder of a cluster that paictl installed
	Pushed                    // a configuration in the cluster
)

var needNames = []string{"ssh", "api", "pods", "folder", "managed", "pushed"}

// Names returns the names of the needs in the set.
func (n Need) Names() []string {
	out := []string{}
	for i, name := range needNames {
		if n&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	return out
}

// Check describes one check of the doctor.
type Check struct {
	ID       string // stable, and the anchor in docs/doctor.md
	Group    string
	Title    string
	Examines string // its subject, and its limits
	Needs    Need
	// Limit is the maximum duration of the check; zero means a minute.
	Limit time.Duration
	// Ends limits the time for removing the check's objects after its limit has expired or the run was canceled.
	Ends time.Duration
	// Run returns problems, or notes with the verdicts ok and skipped. Without findings, the verdict is ok.
	Run func(context.Context, *Cluster) ([]Finding, error)
}

// Docs returns the location of the check's description.
func (c *Check) Docs() string { return "docs/doctor.md#" + c.ID }

// Groups returns the groups of checks in display order.
func Groups() []string {
	return []string{"machines", "kubernetes", "network", "storage", "configuration", "services", "gpus", "jobs", "end-to-end"}
}

// Finding is the result of a check for one machine, service or object, or for the whole cluster.
type Finding struct {
	// The machine, service or object of the finding. It is empty for findings about the cluster.
	Where   string  `json:"where,omitempty"`
	Verdict Verdict `json:"verdict"`
	Message string  `json:"message"`
	// Evidence is the observation. A message of another program is quoted verbatim.
	Evidence string `json:"evidence,omitempty"`
	Remedy   string `json:"remedy,omitempty"`
	// Fixable means that --fix repairs the problem. Fix is the repair.
	Fixable bool `json:"fixable,omitempty"`
	Fix     *Fix `json:"fix,omitempty"`
}

func problem(where, remedy, format string, args ...any) Finding {
	return Finding{Where: where, Verdict: Problem, Remedy: remedy, Message: fmt.Sprintf(format, args...)}
}

func warning(where, remedy, format string, args ...any) Finding {
	return Finding{Where: where, Verdict: Warning, Remedy: remedy, Message: fmt.Sprintf(format, args...)}
}

func found(f checks.Finding) Finding {
	verdict := map[string]Verdict{checks.Error: Problem, checks.Warning: Warning}
	return Finding{Where: f.Host, Verdict: verdict[f.Severity], Message: f.Message, Evidence: f.Evidence, Remedy: f.Remedy}
}

// note returns a finding that is useful information but not a problem.
func note(where, format string, args ...any) Finding {
	return Finding{Where: where, Verdict: OK, Message: fmt.Sprintf(format, args...)}
}

// skip returns a finding with the reason why a check doesn't apply.
func skip(format string, args ...any) []Finding {
	return []Finding{{Verdict: Skipped, Message: fmt.Sprintf(format, args...)}}
}

func (f Finding) seen(evidence string) Finding {
	f.Evidence = strings.TrimSpace(evidence)
	return f
}

func (f Finding) fixedBy(fix *Fix) Finding {
	f.Fixable, f.Fix = true, fix
	return f
}

// Result holds the findings of one check.
type Result struct {
	ID      string   `json:"id"`
	Group   string   `json:"group"`
	Title   string   `json:"title"`
	Looks   string   `json:"looksAt"`
	Needs   []string `json:"needs"`
	Verdict Verdict  `json:"verdict"`
	Docs    string   `json:"docs"`
	// Findings is sorted by verdict, the worst first. It is empty if the check found no problems and has no notes.
	Findings []Finding `json:"findings"`
	Seconds  float64   `json:"seconds"`
}

// Report holds the results of all checks.
type Report struct {
	Cluster string    `json:"cluster,omitempty"`
	Server  string    `json:"server,omitempty"`
	At      time.Time `json:"at"`
	// Verdict is the worst verdict of all checks. Skipped checks don't count.
	Verdict Verdict  `json:"verdict"`
	Counts  Counts   `json:"counts"`
	Results []Result `json:"checks"` // in the order of Checks
	Fixes   []Fixed  `json:"fixes,omitempty"`
}

// Counts holds the numbers of checks by verdict.
type Counts struct {
	OK      int `json:"ok"`
	Skipped int `json:"skipped"`
	Warning int `json:"warning"`
	Problem int `json:"problem"`
}

func (r *Report) count() {
	r.Counts, r.Verdict = Counts{}, OK
	for _, one := range r.Results {
		switch one.Verdict {
		case OK:
			r.Counts.OK++
		case Skipped:
			r.Counts.Skipped++
		case Warning:
			r.Counts.Warning++
		case Problem:
			r.Counts.Problem++
		}
		if one.Verdict != Skipped && one.Verdict.rank() > r.Verdict.rank() {
			r.Verdict = one.Verdict
		}
	}
}

// Checks returns all checks, sorted by group.
func Checks() []*Check {
	all := slices.Concat(machineChecks(), clockChecks(), diskChecks(), kubernetesChecks(), etcdChecks(), networkChecks(), storageChecks(),
		configurationChecks(), serviceChecks(), gpuChecks(), jobChecks(), endToEndChecks())
	order := Groups()
	slices.SortStableFunc(all, func(a, b *Check) int { return cmp.Compare(slices.Index(order, a.Group), slices.Index(order, b.Group)) })
	return all
}

// gates maps each need to the check that reports whether the need is met. If other checks are skipped because the need isn't met, only this check
// reports the problem. The gate therefore always runs with these checks.
var gates = map[Need]string{Machines: "machines-reachable", API: "api-server", Pods: "pods-start"}

// Select returns the checks whose ID or group is in the second argument and not in the third argument. It adds the gates of their needs. It also
// returns unknown names.
func Select(all []*Check, only, without []string) (chosen []*Check, unknown []string) {
	named := func(c *Check, names []string) bool {
		return slices.Contains(names, c.ID) || slices.Contains(names, c.Group)
	}
	for _, name := range slices.Concat(only, without) {
		if !slices.ContainsFunc(all, func(c *Check) bool { return named(c, []string{name}) }) {
			unknown = append(unknown, name)
		}
	}
	var needs Need
	meant := map[string]bool{}
	for _, c := range all {
		if (len(only) == 0 || named(c, only)) && !named(c, without) {
			meant[c.ID] = true
			needs |= c.Needs
		}
	}
	for need, gate := range gates {
		meant[gate] = meant[gate] || needs&need != 0
	}
	for _, c := range all {
		if meant[c.ID] && !named(c, without) {
			chosen = append(chosen, c)
		}
	}
	return chosen, unknown
}
