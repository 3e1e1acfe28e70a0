// Package paictl holds the source of the programs that paictl puts into images, so that an installed paictl builds them without a checkout.
// In: nothing. Out: the files of a Go module.
//
// The package is at the root because go:embed takes only files below its own folder, and the module's
// go.mod and go.sum, which pin the libraries of the programs, are here. hack/build embeds the same files as one
// compressed archive.
package paictl

import "fmt"

// Module is the path of the module that Source returns.
const Module = "github.com/openpai/paictl"

// Program is one of paictl's own programs, in an image of its name.
type Program struct {
	Name    string // the name also the name of its folder, cmd/NAME
	Service string // whose chart runs the image; "" for the one in the pods of jobs, and the one that "cluster up" runs
	Masters bool   // only machines of the control plane need the image
	// Machine runs on the machines themselves: a bundle that is built has the program, and its image only carries it to those who fetch one.
	Machine bool
}

// InCluster returns the programs that images are made for. pai-nvml is in the agent's.
func InCluster() []Program {
	return []Program{
		{Name: "pai-agent", Service: "agent"},
		{Name: "pai-alert-handler", Service: "alert-handler", Masters: true},
		{Name: "pai-api-proxy", Machine: true},
		{Name: "pai-api-vip", Masters: true},
		{Name: "pai-backup", Service: "cluster-backup", Masters: true},
		{Name: "pai-controller", Service: "job-controller", Masters: true},
		{Name: "pai-csr-approver", Masters: true},
		{Name: "pai-logs", Service: "log-manager"},
		{Name: "pai-peer", Machine: true},
		{Name: "pai-runtime"},
		{Name: "pai-scheduler", Service: "scheduler", Masters: true},
		{Name: "pai-server", Service: "rest-server", Masters: true},
		{Name: "pai-volume", Service: "storage"},
		{Name: "pai-watchdog", Service: "watchdog", Masters: true},
	}
}

// Programs returns the names of InCluster.
func Programs() []string {
	var out []string
	for _, p := range InCluster() {
		out = append(out, p.Name)
	}
	return out
}

// Source returns the files of the module by path, without its tests. A test compares them with the dependencies that the go command lists.
func Source() map[string]string {
	out, err := read()
	if err != nil {
		panic(fmt.Sprintf("read the embedded source: %v", err)) // the file is in memory
	}
	return out
}
