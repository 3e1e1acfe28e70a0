// Package env computes a task's data about its job: environment variables, a hostfile, names of its peers, all tasks as JSON.
// In: the spec, the peers, the identity of this task. Out: variables and files. It doesn't read files of the machine.
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

// Self identifies this task to the controller and the kubelet.
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

// Task describes a task to the other tasks of its job.
type Task struct {
	Role   string `json:"role"`   // the name in the job file
	Object string `json:"object"` // the name in the Framework
	Index  int    `json:"index"`
	// NodeRank numbers the tasks of all roles in the order of the job file. Rank is the number of the task's first process.
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

// Aliases returns the short names of the task in both spellings of its role. If both spellings are the same, it returns one
// name.
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

// New returns the Layout of a job. p is nil if the job's tasks don't wait for each other. Then only the address of this task is
// known. If p isn't nil, p determines the number of tasks, because a job may be scaled after its submission.
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

// maxIndex is larger than any real task index. It limits the list of tasks, which is at least as long as this task's index.
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

// Me returns this task.
func (l *Layout) Me() *Task { return &l.Tasks[l.Own] }

// Role returns the role of this task.
func (l *Layout) Role() *spec.Role { return &l.Spec.Roles[l.Spec.Role(l.Self.Role)] }

// Instances returns the number of tasks of a role. role is the index of the role.
func (l *Layout) Instances(role int) int { return l.First[role+1] - l.First[role] }

// Master returns the address of the first task of the first role, and the rendezvous port of this task. If the job has only one
// task, the address is a loopback address.
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

func join(ports []int) string {
	parts := make([]string, len(ports))
	for i, p := range ports {
		parts[i] = strconv.Itoa(p)
	}
	return strings.Join(parts, ",")
}

// firstPort returns the first port with a label, or "" if no port has the label.
func (t *Task) firstPort(label string) string {
	if list := t.Ports[label]; len(list) > 0 {
		return strconv.Itoa(list[0])
	}
	return ""
}

// endpoint returns address:port, with brackets around an IPv6 address.
func endpoint(address, port string) string {
	if port == "" {
		return address
	}
	return net.JoinHostPort(address, port)
}
