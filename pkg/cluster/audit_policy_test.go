package cluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/openpai/paictl/pkg/cluster/phases"
)

func TestTheAuditLogMissesNoPatchAndNoReadOfASecret(t *testing.T) {
	const node, nodes = "system:node:w1", "system:nodes"
	rules, err := policy.LoadPolicyFromBytes(phases.AuditPolicy)
	require.NoError(t, err)
	evaluator := policy.NewPolicyRuleEvaluator(rules)
	for _, c := range []struct{ user, group, verb, apiGroup, resource, want string }{
		{"alice", "system:authenticated", "patch", "apps", "deployments", "Metadata"},
		{node, nodes, "patch", "", "nodes", "Metadata"},
		{"alice", "system:authenticated", "patch", "", "secrets", "Metadata"},
		{"alice", "system:authenticated", "create", "apps", "deployments", "Request"},
		{"alice", "system:authenticated", "update", "", "pods", "Request"},
		{"alice", "system:authenticated", "create", "", "secrets", "Metadata"},
		{node, nodes, "get", "", "secrets", "Metadata"},
		{node, nodes, "watch", "", "secrets", "Metadata"},
		{"system:apiserver", "system:masters", "list", "", "secrets", "Metadata"},
		{node, nodes, "create", "", "serviceaccounts/token", "Metadata"},
		{node, nodes, "get", "", "pods", "None"},
		{node, nodes, "watch", "", "configmaps", "None"},
		{node, nodes, "update", "coordination.k8s.io", "leases", "None"},
	} {
		resource, sub, _ := strings.Cut(c.resource, "/")
		got := evaluator.EvaluatePolicyRule(authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: c.user, Groups: []string{c.group}}, Verb: c.verb,
			APIGroup: c.apiGroup, Resource: resource, Subresource: sub, ResourceRequest: true,
		})
		assert.Equal(t, c.want, string(got.Level), "%+v", c)
	}
}

func TestAnotherAuditPolicyRestartsTheAPIServer(t *testing.T) {
	s := testSpec(t, 1, 0)
	before, err := phases.ControlPlaneHash(s.Fresh(), s.Nodes[0])
	require.NoError(t, err)
	defer func(p []byte) { phases.AuditPolicy = p }(phases.AuditPolicy)
	phases.AuditPolicy = append(slices.Clone(phases.AuditPolicy), "# changed\n"...)
	after, err := phases.ControlPlaneHash(s.Fresh(), s.Nodes[0])
	require.NoError(t, err)
	assert.NotEqual(t, before, after)
}

func TestEachKubeletHasTheFolderOfStaticPods(t *testing.T) {
	assert.Contains(t, string(phases.KubeletService), "\nExecStartPre=/bin/mkdir -p -m 700 /etc/kubernetes/manifests\nExecStart=")
}
