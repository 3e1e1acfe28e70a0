package alias

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOldSpellingsBecomeNewOnes(t *testing.T) {
	for _, tc := range []struct{ name, in, want, note string }{
		{"bootup is up", "cluster k8s-bootup -p /cfg", "cluster up -p /cfg", `paictl: "cluster k8s-bootup" is now "cluster up"`},
		{"--config-path stays", "cluster k8s-bootup --config-path /cfg", "cluster up --config-path /cfg", `paictl: "cluster k8s-bootup" is now "cluster up"`},
		{"flags with =", "machine add --node-list=f", "node add -l=f", `paictl: "machine add" is now "node add"`},
		{"clean keeps data", "cluster k8s-clean -p d", "cluster down -p d", `paictl: "cluster k8s-clean" is now "cluster down"`},
		{"clean -f purges data", "cluster k8s-clean -p d -f", "cluster down -p d --purge-data", `paictl: "cluster k8s-clean" is now "cluster down"`},
		{"clean --force purges data", "cluster k8s-clean --force -p d", "cluster down --purge-data -p d", `paictl: "cluster k8s-clean" is now "cluster down"`},
		{"generate moved", "cluster generate-configuration -i q.yaml -o d -f", "config generate -i q.yaml -o d -f", `paictl: "cluster generate-configuration" is now "config generate"`},
		{"generate's long flags", "cluster generate-configuration --input q --output d --force", "config generate -i q -o d -f", `paictl: "cluster generate-configuration" is now "config generate"`},
		{"set-env is kubeconfig", "cluster k8s-set-env", "cluster kubeconfig", `paictl: "cluster k8s-set-env" is now "cluster kubeconfig"`},
		{"install-kubectl is kubeconfig", "cluster install-kubectl -p d", "cluster kubeconfig -p d", `paictl: "cluster install-kubectl" is now "cluster kubeconfig"`},
		{"machines are nodes", "machine add -p d -l f.yaml", "node add -p d -l f.yaml", `paictl: "machine add" is now "node add"`},
		{"check is preflight", "check -p d", "cluster preflight -p d", `paictl: "check" is now "cluster preflight"`},
		{"config get with -c", "config get -o d -c kc", "config pull -o d --kubeconfig kc", `paictl: "config get" is now "config pull"`},
		{"get-id with -c", "config get-id -c kc", "config get-id --kubeconfig kc", `paictl: "-c" is now "--kubeconfig"`},
		{"pull with -c", "config pull -o d -c=kc", "config pull -o d --kubeconfig=kc", `paictl: "-c" is now "--kubeconfig"`},
		{"push of the services alone", "config push -p d -m service -c kc", "config push -p d --only layout.yaml,services-configuration.yaml --kubeconfig kc",
			`paictl: "-m service" is now "--only layout.yaml,services-configuration.yaml", "-c" is now "--kubeconfig"`},
		{"push of all", "config push -m all", "config push", `paictl: "-m all" is now "the default"`},
		{"push with a message", "config push -m fixed -- -m all", "config push -m fixed -- -m all", ""},
		{"service start with -c and -k", "service start -c kc -k grafana", "service start --kubeconfig kc -x grafana", `paictl: "-c" is now "--kubeconfig", "-k" is now "-x"`},
		{"refresh is start", "service refresh -n prometheus", "service start -n prometheus", `paictl: "service refresh" is now "service start"`},
		{"config update", "config update -p d", "config push -p d", `paictl: "config update" is now "config push"`},
		{"flags before the command", "--log-file l cluster k8s-bootup -p d", "--log-file l cluster up -p d", `paictl: "cluster k8s-bootup" is now "cluster up"`},
		{"a flag with = before the command", "--log-file=l check", "--log-file=l cluster preflight", `paictl: "check" is now "cluster preflight"`},
		{"a flag that stayed", "cluster up --config-path d", "cluster up --config-path d", ""},
		{"the old kubeconfig flag", "service start --kube-config-path=k", "service start --kubeconfig=k", `paictl: "--kube-config-path" is now "--kubeconfig"`},
		{"services one by one", "service start -n a b -c k", "service start -n a,b --kubeconfig k", `paictl: "-c" is now "--kubeconfig", "-n a b" is now "-n a,b"`},
		{"services left out", "service stop -k a b", "service stop -x a,b", `paictl: "-k" is now "-x", "-x a b" is now "-x a,b"`},
		{"the folder of a stop", "service stop -p d -n a", "service stop -n a", `paictl: "-p" no longer has an effect here`},
		{"the folder of a delete with =", "service delete --config-path=d", "service delete", `paictl: "--config-path" no longer has an effect here`},
		{"the folder of a start is compared", "service start -p d -n a", "service start -p d -n a", ""},
		{"refresh with several names", "service refresh -n a b", "service start -n a,b", `paictl: "service refresh" is now "service start"`},
		{"today's services stay", "service start -n a,b --wait 1m", "service start -n a,b --wait 1m", ""},
		{"nothing after -- is a flag", "sandbox ssh h -- cmd --kube-config-path x", "sandbox ssh h -- cmd --kube-config-path x", ""},
		{"image build needs no configuration", "image build -p d -n pai-volume", "image build -n pai-volume", `paictl: "-p" no longer has an effect here`},
		{"its long flag", "image build --config-path=d x", "image build x", `paictl: "--config-path" no longer has an effect here`},
		{"today's image build stays", "image build -o d", "image build -o d", ""},
		{"an image build's argument stays", "image build -- -p d", "image build -- -p d", ""},
		{"image push stays", "image push -p d", "image push -p d", ""},
		{"today's spelling stays", "cluster up -p d -f", "cluster up -p d -f", ""},
		{"a value that looks like a command", "cluster up -p check", "cluster up -p check", ""},
		{"-c of other commands is theirs", "sandbox ssh -c x", "sandbox ssh -c x", ""},
		{"half a command", "cluster", "cluster", ""},
		{"help of an old command", "cluster k8s-bootup --help", "cluster up --help", `paictl: "cluster k8s-bootup" is now "cluster up"`},
		{"completion is left alone", "__complete config get ", "__complete config get", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := strings.Fields(tc.in)
			before := slices.Clone(args)
			got, note := Rewrite(args)
			assert.Equal(t, strings.Fields(tc.want), got)
			assert.Equal(t, tc.note, note)
			assert.Equal(t, before, args, "the caller's slice is not touched")
		})
	}
}

func TestCommandsWithoutSuccessorSayWhatToUse(t *testing.T) {
	for in, use := range map[string]string{
		"config external-config-update -e f": "config push --from git::URL",
		"layout -o d":                        "config generate --from-kubeconfig",
		"machine remove -p d -l f":           "node remove HOST... -p DIR",
		"machine etcd-fix -p d -l f":         "cluster up --limit",
		"utility ssh -p d -c uptime":         "use ssh itself",
		"utility sftp-copy -p d -n f":        "scp",
	} {
		got, note := Rewrite(strings.Fields(in))
		assert.Nil(t, got, in)
		assert.Contains(t, note, use, in)
		assert.Contains(t, note, "no longer exists", in)
	}
}

func TestNoArgumentsStayNone(t *testing.T) {
	got, note := Rewrite(nil)
	assert.Empty(t, got)
	assert.Empty(t, note)
}
