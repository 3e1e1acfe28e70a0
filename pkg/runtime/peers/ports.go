package peers

import (
	"crypto/md5" //nolint:gosec // OpenPAI's algorithm for ports; its strength doesn't matter
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/runtime/spec"
)

// The default range of ports. The range doesn't include DefaultPortEnd.
const (
	DefaultPortStart = 15000
	DefaultPortEnd   = 40000
	// MasterLabel is the label for computing a job's rendezvous port on the host network.
	MasterLabel = "master"
	// MasterPort is a job's rendezvous port on the pod network.
	MasterPort = 29500
)

// HostPort computes port number k of a label for a task on the host network. Every task computes the same port from the pod's
// UID, so no ports have to be allocated. If the port is in use, the task fails when it starts. The pod of the next attempt has
// a different UID and different ports.
func HostPort(podUID, label string, k, start, end int) int {
	if end <= start {
		start, end = DefaultPortStart, DefaultPortEnd
	}
	sum := md5.Sum(fmt.Appendf(nil, "[%s][%s][%d]", podUID, label, k)) //nolint:gosec // as above
	h := hex.EncodeToString(sum[:])
	var n uint64
	for _, part := range []string{h[0:12], h[12:24], h[24:32]} {
		v, err := strconv.ParseUint(part, 16, 64)
		if err != nil {
			panic(err) // sum is always hexadecimal
		}
		n += v
	}
	return int(n%uint64(end-start)) + start
}

// HostPorts returns all ports of a task on the host network, by label.
func HostPorts(podUID string, ports []spec.Port, start, end int) map[string][]int {
	out := map[string][]int{}
	for _, p := range ports {
		list := make([]int, p.Count)
		for k := range list {
			list[k] = HostPort(podUID, p.Label, k, start, end)
		}
		out[p.Label] = list
	}
	return out
}

// PodPorts returns the ports of a task on the pod network, by label. It numbers the ports from DefaultPortStart in the order of
// the labels, so all tasks of a role have the same ports.
func PodPorts(ports []spec.Port) map[string][]int {
	sorted := slices.Clone(ports)
	slices.SortFunc(sorted, func(a, b spec.Port) int { return strings.Compare(a.Label, b.Label) })
	out := map[string][]int{}
	next := DefaultPortStart
	for _, p := range sorted {
		list := make([]int, p.Count)
		for k := range list {
			if next == MasterPort {
				next++
			}
			list[k] = next
			next++
		}
		out[p.Label] = list
	}
	return out
}
