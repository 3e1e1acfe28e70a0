//go:build !packed

package paictl

import (
	"embed"
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
//go:embed pkg/diagnose/alerts pkg/cluster/gpudriver pkg/diagnose/checks pkg/diagnose/metrics pkg/diagnose/web pkg/audit pkg/job/*.go pkg/job/cache pkg/job/logs pkg/job/report pkg/job/usage pkg/httpserver/clientaddr pkg/people/*.go pkg/people/onetime pkg/people/password pkg/people/rules pkg/people/signin/*.go pkg/people/signin/ldap pkg/people/signin/oidc pkg/people/template pkg/people/token pkg/people/v1 pkg/job/protocol/*.go pkg/job/protocol/*.json pkg/job/protocol/render
//go:embed examples/*.go examples/*.yaml examples/catalogue examples/jobs/hello.yaml examples/jobs/sweep.yaml
//go:embed pkg/alerthandler/*.go pkg/alerthandler/notify/*.go pkg/alerthandler/notify/send/*.go pkg/alerthandler/policy pkg/alerthandler/step pkg/alerthandler/v1
//go:embed pkg/portal/*.go pkg/portal/built
//go:embed pkg/server/*.go pkg/server/assembly pkg/server/app pkg/server/proxy pkg/server/idempotency pkg/server/openapi pkg/server/pages pkg/server/settings pkg/server/tls pkg/server/v2 pkg/server/v3 pkg/server/wire
//go:embed pkg/scheduler/annotation/*.go pkg/scheduler/api/*.go pkg/scheduler/cell/*.go pkg/scheduler/claim
//go:embed pkg/scheduler/gangs/*.go pkg/scheduler/config/*.go pkg/scheduler/plugin pkg/scheduler/queue pkg/scheduler/vc
//go:embed pkg/job/stream pkg/services/facts pkg/services/ready pkg/services/state pkg/status/*.go
var source embed.FS

// read returns the files that go:embed took, without tests: its patterns can't leave them out.
func read() (map[string]string, error) {
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
	return out, err
}
