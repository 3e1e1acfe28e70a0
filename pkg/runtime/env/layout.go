// Package env computes a task's data about its job: environment variables, a hostfile, names of
// its peers, all tasks as JSON.
// In: the spec, the peers, the identity of this task. Out: variables and files; it doesn't read from the
// machine.
package env

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/runtime/peers"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

// Self identifies this task with the names of the controller and the kubelet.
type Self struct {
	Role        string // the name in the Framework
	Index       int
	Attempt     int // the attempt of the Framework
	TaskAttempt int
	PodIP       string
	HostIP      string
	PodUID      string
	// WorkDir is the working directory of the image.
	WorkDir string
}

// Task describes one task of the job to the other tasks.
type Task struct {
	Role   string `json:"role"`   // the name in the job file
	Object string `json:"object"` // the name in the Framework
	Index  int    `json:"index"`
	// NodeRank is the number of the task, counted over all roles in the order of the job file. Rank is the number of the task's first process.
	NodeRank       int              `json:"nodeRank"`
	Rank           int              `json:"rank"`
	LocalWorldSize int              `json:"localWorldSize"`
	Address        string           `json:"address,omitempty"` // the address under which it is reached
	HostIP         string           `json:"hostIP,omitempty"`  // the address of its machine
	Name           string           `json:"name,omitempty"`    // its DNS name, on the pod network
	Ports          map[string][]int `json:"ports,omitempty"`   // by label
	MasterPort     int              `json:"-"`
}

// Alias returns the short name of the task, ROLE-INDEX.
func (t *Task) Alias() string { return t.Object + "-" + strconv.Itoa(t.Index) }

// Aliases returns the short names of the task in both spellings of the role, or only one name if the spellings are the same.
func (t *Task) Aliases() []string {
	if own := t.Role + "-" + strconv.Itoa(t.Index); own != t.Alias() {
		return []string{t.Alias(), own}
	}
	return []string{t.Alias()}
}

// Layout describes the job as a list of tasks.
type Layout struct {
	Spec  *spec.Spec
	Self  Self
	Tasks []Task // by role in the order of the job file, then by index
	Own   int    // index in Tasks
	First []int  // index in Tasks at which each role begins; one more entry at the end
	World int    // number of processes
}

// New returns the Layout of a job. p is nil for jobs whose tasks don't wait for each other. Then only the address of this task is known. If p isn't
// nil, the numbers of tasks come from p, because a job may have been scaled after its submission.
func New(s *spec.Spec, p *peers.Peers, self Self) (*Layout, error) {
	l := &Layout{Spec: s, Self: self, Own: -1}
	role := s.Role(self.Role)
	if role < 0 {
		return nil, fmt.Errorf("the job has no role %q", self.Role)
	}
	if self.Index < 0 || self.Index >= maxIndex {
		return nil, fmt.Errorf("task index %d is not possible", self.Index)
	}
	for i := range s.Roles {
		r := &s.Roles[i]
		known := p.Role(r.Object)
		n := r.Instances
		switch {
		case known != nil:
			n = len(known.PodIPs)
		case p != nil:
			n = 0 // scaled down to zero tasks
		}
		if i == role {
			n = max(n, self.Index+1)
		}
		l.First = append(l.First, len(l.Tasks))
		for k := range n {
			l.add(r, known, k, i == role && k == self.Index)
		}
	}
	l.First = append(l.First, len(l.Tasks))
	if l.Own < 0 {
		return nil, errors.New("this task isn't part of the job")
	}
	return l, nil
}

// maxIndex is larger than the index of any real task. It limits the list of tasks, which is at least as long as this task's index.
const maxIndex = 100_000

func (l *Layout) add(r *spec.Role, known *peers.Role, index int, own bool) {
	t := Task{Role: r.Name, Object: r.Object, Index: index, NodeRank: len(l.Tasks), Rank: l.World, LocalWorldSize: max(1, r.GPU)}
	uid := ""
	if known != nil && index < len(known.PodIPs) {
		t.Address, t.HostIP = known.PodIPs[index], known.HostIPs[index]
		if index < len(known.PodUIDs) {
			uid = known.PodUIDs[index]
		}
	}
	if own {
		l.Own = len(l.Tasks)
		t.Address, t.HostIP = first(l.Self.PodIP, t.Address), first(l.Self.HostIP, t.HostIP)
		uid = first(l.Self.PodUID, uid)
	}
	switch {
	case !l.Spec.HostNetwork:
		t.Ports, t.MasterPort = peers.PodPorts(r.Ports), peers.MasterPort
		if l.Spec.Domain != "" {
			t.Name = t.Alias() + "." + l.Spec.Domain
		}
	case uid != "":
		t.Ports = peers.HostPorts(uid, r.Ports, l.Spec.PortStart, l.Spec.PortEnd)
		t.MasterPort = peers.HostPort(uid, peers.MasterLabel, 0, l.Spec.PortStart, l.Spec.PortEnd)
	}
	l.World += t.LocalWorldSize
	l.Tasks = append(l.Tasks, t)
}

// Me returns the Task of this task.
func (l *Layout) Me() *Task { return &l.Tasks[l.Own] }

// Role returns the role of this task.
func (l *Layout) Role() *spec.Role { return &l.Spec.Roles[l.Spec.Role(l.Self.Role)] }

// Instances returns the number of tasks of the role with this index.
func (l *Layout) Instances(role int) int { return l.First[role+1] - l.First[role] }

// Master returns the address of the first task of the first role, and the port of the rendezvous on this task. A job with only one task connects to
// itself without a name.
func (l *Layout) Master() (string, int) {
	t := &l.Tasks[0]
	port := t.MasterPort
	if port == 0 {
		port = peers.MasterPort
	}
	switch {
	case len(l.Tasks) == 1:
		return "127.0.0.1", port
	case t.Name != "":
		return t.Name, port
	}
	return t.Address, port
}

func first(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

// join returns numbers as text, separated by commas.
func join(ports []int) string {
	parts := make([]string, len(ports))
	for i, p := range ports {
		parts[i] = strconv.Itoa(p)
	}
	return strings.Join(parts, ",")
}

// firstPort returns the first port with a label, or "" if the label has no ports.
func (t *Task) firstPort(label string) string {
	if list := t.Ports[label]; len(list) > 0 {
		return strconv.Itoa(list[0])
	}
	return ""
}

// endpoint returns address:port. It puts an IPv6 address in brackets.
func endpoint(address, port string) string {
	if port == "" {
		return address
	}
	return net.JoinHostPort(address, port)
}
