// Package policy reads the policies of pai-alert-handler, and selects the policies for an alert.
// In: the section alert-handler of services-configuration.yaml as JSON, alerts of Alertmanager. Out: the steps to take. The package sends no
// requests.
package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/alerthandler/step"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// Config is the configuration of pai-alert-handler without notifications.
type Config struct {
	Limits       Limits   `json:"limits"`
	DrainTimeout Duration `json:"drainTimeout"`
	// RestartMachines allows policies and people to use the operation restart-machine.
	RestartMachines bool `json:"restartMachines"`
	// Keep is how long finished Actions are kept.
	Keep     Duration `json:"keep"`
	Policies []Policy `json:"policies"`
}

// Limits holds the limits that apply to all policies together.
type Limits struct {
	StopsPerHour                     int `json:"stopsPerHour"`
	StopsPerHourPerVirtualCluster    int `json:"stopsPerHourPerVirtualCluster"`
	RequeuesPerHour                  int `json:"requeuesPerHour"`
	RequeuesPerHourPerVirtualCluster int `json:"requeuesPerHourPerVirtualCluster"`
	// RequeuesPerJob is the maximum number of requeues of one job by policies within a day. At this limit, the job stays on its machines.
	RequeuesPerJob     int `json:"requeuesPerJob"`
	MachinesPerHour    int `json:"machinesPerHour"`
	MachinesOutPercent int `json:"machinesOutPercent"`
	RestartsPerHour    int `json:"restartsPerHour"`
	// Returns is the maximum number of times that policies return a machine to service within ReturnsWithin. At this limit, the machine stays out of
	// service.
	Returns       int      `json:"returns"`
	ReturnsWithin Duration `json:"returnsWithin"`
}

// Step converts the limits to the type of package step.
func (l Limits) Step() step.Limits {
	return step.Limits{StopsPerHour: l.StopsPerHour, StopsPerHourAndVC: l.StopsPerHourPerVirtualCluster,
		RequeuesPerHour: l.RequeuesPerHour, RequeuesPerHourAndVC: l.RequeuesPerHourPerVirtualCluster, RequeuesPerJob: l.RequeuesPerJob, MachinesPerHour: l.MachinesPerHour, MachinesOut: l.MachinesOutPercent,
		RestartsPerHour: l.RestartsPerHour, Returns: l.Returns, ReturnsWithin: l.ReturnsWithin.D()}
}

// Policy is a list of steps that begins when an alert fires.
type Policy struct {
	Name string `json:"name"`
	// Alerts selects alerts. Each label must match its regular expression as a whole.
	Alerts map[string]string `json:"alerts"`
	Exempt Exempt            `json:"exempt"`
	// Hours holds the hours in which the policy may begin its steps. Nil means all hours.
	Hours *Hours `json:"hours,omitempty"`
	// DryRun records the steps without carrying them out.
	DryRun bool `json:"dryRun,omitempty"`
	// NotifyOwners sends the owner of each job a notice that the policy would stop the job. It requires DryRun.
	NotifyOwners bool `json:"notifyOwners,omitempty"`
	// Steps are carried out in order. Each step begins when the previous step has succeeded. If a step fails, only a step with IfFailed can follow. If a
	// step is refused, no step follows.
	Steps []Step `json:"steps"`

	matchers map[string]*regexp.Regexp
	opens    *step.Hours
}

// Exempt selects jobs and machines that a policy doesn't act on.
type Exempt struct {
	VirtualClusters []string `json:"virtualClusters,omitempty"`
	Users           []string `json:"users,omitempty"`
	Tags            []string `json:"tags,omitempty"`
	Machines        []string `json:"machines,omitempty"`
}

// Step is one operation of a policy.
type Step struct {
	Do v1.Operation `json:"do"`
	// Grace is the time between the notice to the affected people and the operation.
	Grace Duration `json:"grace,omitempty"`
	// IfFailed means that the step begins only if the step before it has failed. If that step succeeds, the step is left out.
	IfFailed bool `json:"ifFailed,omitempty"`
}

// Duration is a duration that is written in JSON as text, such as "30m".
type Duration time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf("%s is not a duration such as \"30m\"", b)
	}
	v, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is not a duration such as \"30m\"", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// D returns the duration as a time.Duration.
func (d Duration) D() time.Duration { return time.Duration(d) }

// Problem is an error in the configuration at a path such as policies[2].steps[0].do.
type Problem struct {
	Path, Message, Remedy string
}

func (p Problem) Error() string { return p.Path + ": " + p.Message }

// The records of machines and jobs have the same limits.
const (
	mostReturns        = 20
	mostReturnsWithin  = 90 * 24 * time.Hour
	mostRequeuesPerJob = 10
)

// mostGrace is the maximum grace period of an Action.
const mostGrace = 7 * 24 * time.Hour

// Read decodes and checks a configuration.
func Read(data []byte) (*Config, error) {
	c := &Config{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, err
	}
	var errs []error
	for _, p := range c.Check() {
		errs = append(errs, p)
	}
	return c, errors.Join(errs...)
}

// Check returns the errors in a configuration. It also compiles the expressions and hours of the policies.
func (c *Config) Check() (out []Problem) {
	add := func(path, remedy, format string, args ...any) {
		out = append(out, Problem{path, fmt.Sprintf(format, args...), remedy})
	}
	for path, n := range map[string]int{
		"limits.stopsPerHour": c.Limits.StopsPerHour, "limits.stopsPerHourPerVirtualCluster": c.Limits.StopsPerHourPerVirtualCluster,
		"limits.requeuesPerHour": c.Limits.RequeuesPerHour, "limits.requeuesPerHourPerVirtualCluster": c.Limits.RequeuesPerHourPerVirtualCluster,
		"limits.requeuesPerJob": c.Limits.RequeuesPerJob, "limits.machinesPerHour": c.Limits.MachinesPerHour, "limits.machinesOutPercent": c.Limits.MachinesOutPercent,
		"limits.restartsPerHour": c.Limits.RestartsPerHour, "limits.returns": c.Limits.Returns,
	} {
		if n < 0 {
			add(path, "set 0 or more; 0 forbids it to all policies", "%d is negative", n)
		}
	}
	if c.Limits.MachinesOutPercent > 100 {
		add("limits.machinesOutPercent", "set a percentage", "%d is more than 100", c.Limits.MachinesOutPercent)
	}
	if n := c.Limits.RequeuesPerJob; n > mostRequeuesPerJob {
		add("limits.requeuesPerJob", fmt.Sprintf("set %d or less", mostRequeuesPerJob), "%d requeues of a job can't be counted", n)
	}
	if w := c.Limits.ReturnsWithin.D(); c.Limits.Returns > mostReturns || c.Limits.Returns > 0 && (w < time.Hour || w > mostReturnsWithin) {
		add("limits.returnsWithin", fmt.Sprintf("set a time from 1h to %s, and returns of %d at most", mostReturnsWithin, mostReturns),
			"%d returns within %s can't be counted", c.Limits.Returns, w)
	}
	if c.DrainTimeout < Duration(time.Minute) {
		add("drainTimeout", "set a longer time, such as 30m", "%s is shorter than a minute, and pods need time to end", c.DrainTimeout.D())
	}
	if c.Keep < Duration(24*time.Hour) {
		add("keep", "set 24h or more", "%s is shorter than 24h, and earlier actions tell which alerts are repeated", c.Keep.D())
	}
	seen := map[string]bool{}
	for i := range c.Policies {
		p := &c.Policies[i]
		at := fmt.Sprintf("policies[%d]", i)
		switch {
		case !validName.MatchString(p.Name):
			add(at+".name", "use 1 to 40 lower-case letters, digits and hyphens", "%q isn't a valid name", p.Name)
		case seen[p.Name]:
			add(at+".name", "give each policy its own name", "another policy has the name %q", p.Name)
		}
		seen[p.Name] = true
		p.check(at, add)
		p.checkRestarts(at, c.RestartMachines, add)
	}
	if i := slices.IndexFunc(c.Policies, func(p Policy) bool { return p.Does(v1.OperationRestartMachine) }); i >= 0 && c.Limits.RestartsPerHour == 0 {
		add("limits.restartsPerHour", "set 1 or more, or remove the step restart-machine of all policies", "the policy %q would drain machines and never restart them", c.Policies[i].Name)
	}
	slices.SortFunc(out, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return out
}

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

func (p *Policy) check(at string, add func(path, remedy, format string, args ...any)) {
	if len(p.Alerts) == 0 {
		add(at+".alerts", "name the alert: {alertname: NAME}", "a policy without labels would apply to every alert")
	}
	p.matchers = map[string]*regexp.Regexp{}
	for label, text := range p.Alerts {
		_, err := regexp.Compile(text) // "a)|(b" is one only inside of the other
		var re *regexp.Regexp
		if err == nil {
			re, err = regexp.Compile("^(?:" + text + ")$")
		}
		if err != nil {
			add(at+".alerts."+label, "correct it; . and | and others have a meaning there", "%q is not a regular expression: %s", text, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
			continue
		}
		p.matchers[label] = re
	}
	if len(p.Alerts) > 0 && len(p.matchers) == len(p.Alerts) && p.Applies(&Alert{}) {
		add(at+".alerts", "name the alert: {alertname: NAME}", "a policy whose expressions all match an empty label would apply to every alert")
	}
	if p.Hours != nil {
		p.opens = p.Hours.check(at+".hours", add)
	}
	switch stops := p.StopsJobs(); {
	case p.NotifyOwners && !stops:
		add(at+".notifyOwners", "remove it, or add the step {do: stop-job}", "the policy stops no jobs, so their owners need no notices")
	case p.NotifyOwners && !p.DryRun:
		add(at+".notifyOwners", "remove it, or set dryRun: true", "the policy stops jobs, and their owners get a notice in any case")
	}
	if len(p.Steps) == 0 {
		add(at+".steps", "add a step such as {do: cordon}, or remove the policy", "a policy without steps does nothing")
	}
	job := false
	for i, s := range p.Steps {
		path := fmt.Sprintf("%s.steps[%d]", at, i)
		if !slices.Contains(v1.Operations(), s.Do) {
			add(path+".do", "use one of "+join(v1.Operations()), "the operation %q is unknown", s.Do)
			continue
		}
		if g := s.Grace.D(); g < 0 || g > mostGrace {
			add(path+".grace", "set a time from 0s to "+mostGrace.String(), "the grace %s is too long, or negative", g)
		}
		switch {
		case i > 0 && job != s.Do.ForJobs():
			add(path+".do", "make two policies of it", "%s acts on another target than the step before: a policy is either for jobs or for machines", s.Do)
		case s.IfFailed && i == 0:
			add(path+".ifFailed", "remove it, or put the step that may fail before it", "no step is before it")
		case s.IfFailed && s.Do.ForJobs():
			add(path+".ifFailed", "remove it", "steps for jobs have no alternative")
		case s.IfFailed && s.Do == v1.OperationUncordon:
			add(path+".ifFailed", "remove it; the machine stays out of service, and administrators get a notice", "it would return a machine to service whose repair has failed")
		case i > 0 && job && p.Does(v1.OperationRequeueJob):
			add(path+".do", "make two policies of it, or remove a step", "requeue-job is the only step of its policy: another one would affect the attempt that it starts")
		}
		job = s.Do.ForJobs()
	}
}

// Next returns the index of the step after the one with index at, whose Action ended in a phase. ok is false if no step follows.
func (p *Policy) Next(at int, ended v1.Phase) (index int, ok bool) {
	at++
	switch ended {
	case v1.PhaseSucceeded:
		for at < len(p.Steps) && p.Steps[at].IfFailed {
			at++
		}
		return at, at < len(p.Steps)
	case v1.PhaseFailed:
		return at, at < len(p.Steps) && p.Steps[at].IfFailed
	default:
		return at, false
	}
}

// checkRestarts checks that restarts are allowed. It also checks that the machine is drained, and isn't returned to service before the restart.
func (p *Policy) checkRestarts(at string, allowed bool, add func(path, remedy, format string, args ...any)) {
	drained, returned := false, false
	for i, s := range p.Steps {
		switch s.Do {
		case v1.OperationDrain:
			drained, returned = drained || !s.IfFailed, false
		case v1.OperationUncordon:
			returned = true
		}
		if s.Do != v1.OperationRestartMachine {
			continue
		}
		path := fmt.Sprintf("%s.steps[%d].do", at, i)
		if !allowed {
			add(path, "set restartMachines: true in the sections alert-handler and agent, or remove the step", "restarts of machines are off")
		}
		switch {
		case !drained:
			add(path, "add the step {do: drain} before it", "the machine isn't drained before its restart")
		case returned:
			add(path, "put {do: uncordon} after it: [{do: drain}, {do: restart-machine}, {do: uncordon}]", "the machine is returned to service before its restart, which is refused then")
		}
	}
}

func join(list []v1.Operation) string {
	out := make([]string, 0, len(list))
	for _, o := range list {
		out = append(out, string(o))
	}
	return strings.Join(out, ", ")
}

// ByName returns the policy with the given name, or nil.
func (c *Config) ByName(name string) *Policy {
	for i := range c.Policies {
		if c.Policies[i].Name == name {
			return &c.Policies[i]
		}
	}
	return nil
}

// StopsJobs reports whether a step of the policy stops jobs.
func (p *Policy) StopsJobs() bool { return p.Does(v1.OperationStopJob) }
