// Package paictl holds the source of the programs that paictl puts into images, so that an installed paictl builds them without a checkout.
// In: nothing. Out: the files of a Go module.
//
// The package is at the root because go:embed takes only files below its own folder, and the module's
// go.mod and go.sum, which pin the libraries of the programs, are here.
package paictl

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:embed go.mod go.sum
//go:embed cmd/pai-agent cmd/pai-alert-handler cmd/pai-api-proxy cmd/pai-api-vip cmd/pai-backup cmd/pai-controller cmd/pai-csr-approver cmd/pai-logs cmd/pai-nvml cmd/pai-peer cmd/pai-runtime cmd/pai-scheduler cmd/pai-server cmd/pai-volume cmd/pai-watchdog
//go:embed pkg/httpserver/access pkg/node/agent pkg/cluster/apiproxy pkg/cluster/apivip pkg/cluster/approver pkg/httpserver pkg/hint pkg/kube/*.go pkg/kube/watch pkg/cluster/peer pkg/ui/plural pkg/version
//go:embed pkg/cluster/backup/*.go pkg/cluster/backup/target/*.go pkg/cluster/pki pkg/config/*.go pkg/config/store/*.go pkg/ssh/*.go pkg/ssh/internal pkg/ssh/scripts
//go:embed pkg/cluster/backups pkg/node/logstore pkg/node/meter pkg/node/podapi pkg/node/volume pkg/diagnose/watchdog
//go:embed pkg/job/api pkg/job/archive pkg/job/controller pkg/job/listing pkg/job/controller/machine
//go:embed pkg/job/controller/rendezvous pkg/job/controller/server pkg/job/controller/status pkg/job/v1
//go:embed pkg/runtime/barrier pkg/runtime/code pkg/runtime/env pkg/runtime/exit pkg/runtime/install
//go:embed pkg/runtime/journal pkg/runtime/peers pkg/runtime/plugin pkg/runtime/process pkg/runtime/report
//go:embed pkg/runtime/rules pkg/runtime/spec pkg/runtime/sshd pkg/runtime/task pkg/runtime/transfer
//go:embed pkg/layout pkg/secret pkg/config/strictyaml pkg/ui/terminal/*.go
//go:embed pkg/diagnose/alerts pkg/cluster/gpudriver pkg/diagnose/checks pkg/diagnose/metrics pkg/diagnose/web pkg/audit pkg/job/*.go pkg/job/cache pkg/job/logs pkg/job/usage pkg/httpserver/clientaddr pkg/people/*.go pkg/people/onetime pkg/people/password pkg/people/rules pkg/people/signin/*.go pkg/people/signin/ldap pkg/people/signin/oidc pkg/people/template pkg/people/token pkg/people/v1 pkg/job/protocol/*.go pkg/job/protocol/*.json pkg/job/protocol/render
//go:embed examples/*.go examples/*.yaml examples/catalogue examples/jobs/hello.yaml examples/jobs/sweep.yaml
//go:embed pkg/alerthandler/*.go pkg/alerthandler/notify/*.go pkg/alerthandler/notify/send/*.go pkg/alerthandler/policy pkg/alerthandler/step pkg/alerthandler/v1
//go:embed pkg/portal/*.go pkg/portal/built
//go:embed pkg/server/*.go pkg/server/assembly pkg/server/app pkg/server/proxy pkg/server/idempotency pkg/server/openapi pkg/server/pages pkg/server/settings pkg/server/tls pkg/server/v2 pkg/server/v3 pkg/server/wire
//go:embed pkg/scheduler/annotation/*.go pkg/scheduler/api/*.go pkg/scheduler/cell/*.go pkg/scheduler/claim
//go:embed pkg/scheduler/state/*.go pkg/scheduler/config/*.go pkg/scheduler/plugin pkg/scheduler/queue pkg/scheduler/vc
//go:embed pkg/job/stream pkg/services/facts pkg/services/ready pkg/services/state pkg/status/*.go
var source embed.FS

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

// InCluster are the programs that images are made for. pai-nvml is in the agent's.
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

// Programs are the names of InCluster.
func Programs() []string {
	var out []string
	for _, p := range InCluster() {
		out = append(out, p.Name)
	}
	return out
}

// Source returns the files of the module by path, without its tests. A test compares them with the dependencies that the go command lists.
func Source() map[string]string {
	out := map[string]string{}
	err := fs.WalkDir(source, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path.Base(name) == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(name, "_test.go") {
			return nil
		}
		data, err := source.ReadFile(name)
		out[name] = string(data)
		return err
	})
	if err != nil {
		panic(fmt.Sprintf("read the embedded source: %v", err)) // the file is in memory
	}
	return out
}
