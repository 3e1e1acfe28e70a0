package templates

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Each of these jobs would get access to other users' resources.
func TestThereIsNoWayRoundTheRules(t *testing.T) {
	_, a := guarded(t)
	for name, test := range map[string]struct{ metadata, spec string }{
		"all GPUs of the image by asking the plugin for none": {"", "containers: [{name: app, image: i, resources: {limits: {nvidia.com/gpu: 0}}}]"},
		"all GPUs by envFrom of a Secret":                     {"", "containers: [{name: app, image: i, envFrom: [{secretRef: {name: mine-x}}], resources: {limits: {nvidia.com/gpu: 1}}}]"},
		"an account by its old field":                         {"", "serviceAccount: other"},
		"a machine taken out of use":                          {"", "tolerations: [{key: node.kubernetes.io/unschedulable, operator: Exists}]"},
		"CDI of NVIDIA":                                       {"annotations: {nvidia.cdi.k8s.io/app: all}", ""},
		"devices by claim":                                    {"", "containers: [{name: app, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, value: none}], resources: {claims: [{name: g}]}}]\nresourceClaims: [{name: g, resourceClaimName: others}]"},
	} {
		for _, kind := range []string{"Pod", "Framework"} {
			if kind == "Framework" && strings.HasSuffix(name, "for none") {
				continue // the controller turns off the task's GPUs itself
			}
			t.Run(name+" in a "+kind, func(t *testing.T) {
				assert.Error(t, a.apply(t, jobObject(t, kind, test.metadata, test.spec), true))
			})
		}
	}
}

// Each of these jobs is legitimate.
func TestWhatKubernetesTakesOfAJobTheRulesTake(t *testing.T) {
	_, a := guarded(t)
	env := "env: [{name: NVIDIA_VISIBLE_DEVICES, value: none}]"
	for name, test := range map[string]struct{ metadata, spec string }{
		"half a processor as a number": {"", "containers: [{name: app, image: i, " + env + ", resources: {limits: {cpu: 0.5}}}]"},
		"a time that is null":          {"creationTimestamp: null", ""},
		"a list that is null":          {"", "imagePullSecrets: null"},
		"volumes null":                 {"", "volumes: null"},
		"a volume without source":      {"", "volumes: [{name: v}]"},
		"env with null value":          {"", "containers: [{name: app, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, value: none}, {name: A, value: null}]}]"},
		"resources empty":              {"", "containers: [{name: app, image: i, " + env + ", resources: {}}]"},
		"a port":                       {"", "containers: [{name: app, image: i, " + env + ", ports: [{containerPort: 80}]}]"},
		"same port twice, tcp and udp": {"", "containers: [{name: app, image: i, " + env + ", ports: [{containerPort: 80, protocol: UDP}, {containerPort: 80}]}]"},
		"memory as a number":           {"", "containers: [{name: app, image: i, " + env + ", resources: {limits: {memory: 1073741824}}}]"},
		"legacy isolation":             {"", "schedulerName: pai-scheduler\ncontainers: [{name: app, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, valueFrom: {fieldRef: {fieldPath: \"metadata.annotations['hivedscheduler.microsoft.com/pod-gpu-isolation']\"}}}], resources: {limits: {hivedscheduler.microsoft.com/pod-scheduling-enable: 1}}}]"},
		"void and a fieldRef api":      {"", "containers: [{name: app, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, value: void}]}]"},
		"a null of seconds":            {"", "tolerations: [{key: a, operator: Equal, value: b, effect: NoSchedule, tolerationSeconds: null}]"},
	} {
		for _, kind := range []string{"Pod", "Framework"} {
			if kind == "Framework" && strings.Contains(name, "null") && !strings.Contains(name, "time") {
				continue // fields of a custom resource can't be null; a user can omit them
			}
			t.Run(name+" in a "+kind, func(t *testing.T) {
				assert.NoError(t, a.apply(t, jobObject(t, kind, test.metadata, test.spec), true))
			})
		}
	}
	t.Run("a Secret by placeholder in a Framework", func(t *testing.T) {
		err := a.apply(t, jobObject(t, "Framework", "", "volumes: [{name: v, secret: {secretName: \"{{FC_FRAMEWORK_NAME}}-spec\"}}]"), true)
		assert.NoError(t, err)
	})
}

func TestTheRulesHoldForLargeFrameworks(t *testing.T) {
	_, a := guarded(t)
	for _, size := range [][2]int{{100, 20}, {100, 60}, {500, 10}, {1000, 6}, {1000, 12}, {1000, 20}, {20, 400}} {
		t.Run(fmt.Sprintf("%d roles of %d variables", size[0], size[1]), func(t *testing.T) {
			var env []string
			env = append(env, "{name: NVIDIA_VISIBLE_DEVICES, value: none}")
			for i := range size[1] {
				env = append(env, fmt.Sprintf("{name: V%d, value: x}", i))
			}
			o := jobObject(t, "Framework", "", "containers: [{name: app, image: i, env: ["+strings.Join(env, ", ")+"]}]\ninitContainers: [{name: b, image: i}]\nvolumes: [{name: a, emptyDir: {}}, {name: s, secret: {secretName: mine-spec}}, {name: t, projected: {sources: [{configMap: {name: c}}]}}]\nimagePullSecrets: [{name: mine-r}]")
			roles, _, _ := unstructured.NestedSlice(o.Object, "spec", "taskRoles")
			var all []any
			for i := range size[0] {
				r := roles[1].(map[string]any)
				c := map[string]any{}
				for k, v := range r {
					c[k] = v
				}
				c["name"] = fmt.Sprintf("r%d", i)
				all = append(all, c)
			}
			o.Object["spec"].(map[string]any)["taskRoles"] = all
			err := a.apply(t, o, true)
			assert.NoError(t, err)
		})
	}
}
