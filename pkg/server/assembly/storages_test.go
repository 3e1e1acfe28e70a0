package assembly_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/token"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// claim creates a PersistentVolumeClaim. If source isn't nil, it also creates the claim's volume.
func claim(t *testing.T, c *kube.Cluster, name string, labels map[string]string, source *corev1.PersistentVolumeSource) {
	t.Helper()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Ti")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	claims, class := c.Client.CoreV1().PersistentVolumeClaims(kube.JobNamespace), ""
	p, err := claims.Create(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: modes, StorageClassName: &class, VolumeName: "pv-" + name, Resources: corev1.VolumeResourceRequirements{Requests: size}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { // no controller removes the finalizers
		for _, kind := range []string{"persistentvolumes/pv-" + name, "namespaces/" + kube.JobNamespace + "/persistentvolumeclaims/" + name} {
			r := c.Client.CoreV1().RESTClient()
			_ = r.Patch("application/merge-patch+json").AbsPath("/api/v1/" + kind).Body([]byte(`{"metadata":{"finalizers":null}}`)).Do(t.Context()).Error()
			_ = r.Delete().AbsPath("/api/v1/" + kind).Do(t.Context()).Error()
		}
	})
	if source == nil {
		return
	}
	_, err = c.Client.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name}, Spec: corev1.PersistentVolumeSpec{
		Capacity: size, AccessModes: modes, MountOptions: []string{"hard"}, PersistentVolumeSource: *source}}, metav1.CreateOptions{})
	require.NoError(t, err)
	p.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: size, AccessModes: modes}
	_, err = claims.UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
	require.NoError(t, err)
}

func TestStoragesByGrant(t *testing.T) {
	h := newHouse(t)
	ask := h.asker(t)
	claim(t, h.cluster, "nfs-home", map[string]string{"share": "false"}, &corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "10.0.0.9", Path: "/home", ReadOnly: true}})
	claim(t, h.cluster, "samba", nil, &corev1.PersistentVolumeSource{FlexVolume: &corev1.FlexPersistentVolumeSource{Driver: "microsoft.com/smb", SecretRef: &corev1.SecretReference{Name: "smb-secret"},
		Options: map[string]string{"source": "//10.0.0.9/share", "mountoptions": "vers=3.0"}}})
	claim(t, h.cluster, "blob", nil, &corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "blob.csi.azure.com", VolumeHandle: "b", NodeStageSecretRef: &corev1.SecretReference{Name: "elsewhere", Namespace: "kube-system"},
		VolumeAttributes: map[string]string{"containerName": "data", "secretLike": "HIDDEN"}}})
	claim(t, h.cluster, "local", nil, &corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}})
	claim(t, h.cluster, "unbound", nil, nil)
	_, err := h.cluster.Client.CoreV1().Secrets(kube.JobNamespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "smb-secret"},
		StringData: map[string]string{"username": "sam", "password": "S4MBA-KEY", "other": "OTHER"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	h.Group("stores", func(g *v1.GroupSpec) { g.Storages = []string{"samba", "nfs-home", "unbound", "gone", "blob", "local"} })
	h.person(t, "stella", "stores", "speech")

	const home, samba = `{"name":"nfs-home","share":false,"volumeName":"pv-nfs-home","default":false,"capacity":"1Ti"}`, `{"name":"samba","share":true,"volumeName":"pv-samba","default":true,"capacity":"1Ti"}`
	all := ask("stella", "GET", "/storages", "", 200)
	assert.Contains(t, all, home)
	assert.Contains(t, all, samba)
	assert.NotContains(t, all, "unbound", "nothing is behind it")
	assert.JSONEq(t, `{"storages":[`+samba+`]}`, ask("stella", "GET", "/storages?default=true", "", 200))
	assert.JSONEq(t, `{"storages":[]}`, ask("ann", "GET", "/storages", "", 200), "none is granted")
	assert.JSONEq(t, `{"storages":[]}`, ask("root", "GET", "/storages", "", 200), "an administrator has none by being one")
	assert.Contains(t, ask("root", "GET", "/storages?all", "", 200), `"nfs-home"`)
	ask("stella", "GET", "/storages?all=true", "", 403, "ForbiddenUserError")

	administrators := h.as("root", "GET", "/api/v3/storages", "")
	require.Equal(t, 200, administrators.Status)
	assert.Contains(t, administrators.Body, `{"name":"nfs-home","kind":"nfs","volume":"pv-nfs-home","capacity":"1Ti","readOnly":true,"perUser":true,"groups":["stores"]}`)
	assert.NotContains(t, administrators.Body, "smb-secret", "not even the name of the Secret")
	assert.Equal(t, 403, h.as("stella", "GET", "/api/v3/storages", "").Status)

	assert.JSONEq(t, `{"name":"nfs-home","share":false,"volumeName":"pv-nfs-home","capacity":"1Ti","type":"nfs","data":{"server":"10.0.0.9","path":"/home"},"readOnly":true,"mountOptions":["hard"]}`,
		ask("stella", "GET", "/storages/nfs-home", "", 200))
	assert.Contains(t, ask("stella", "GET", "/storages/local", "", 200), `"type":"other","data":{}`)
	for _, name := range []string{"unbound", "gone"} {
		ask("stella", "GET", "/storages/"+name, "", 404, "NoStorageError")
	}
	for _, name := range []string{"nfs-home", "gone", "no-such"} {
		ask("ann", "GET", "/storages/"+name, "", 403, "ForbiddenUserError")
		ask("root", "GET", "/storages/"+name, "", 403, "ForbiddenUserError")
	}
	ask("stella", "GET", "/storage/config/nfs-home", "", 410, "GoneError")

	t.Run("credentials only where they are asked for, and may be", func(t *testing.T) {
		p, err := h.People.Person("stella")
		require.NoError(t, err)
		for _, scope := range []rules.Scope{rules.ScopeRead, rules.ScopeSecrets} {
			scopes := []rules.Scope{rules.ScopeRead}
			if scope != rules.ScopeRead {
				scopes = append(scopes, scope)
			}
			made, err := h.Tokens.Application(t.Context(), p, token.New{Scopes: scopes})
			require.NoError(t, err)
			h.tokens[string(scope)] = made.Token.Reveal()
		}
		const without = `"type":"samba","data":{"address":"//10.0.0.9/share"},"readOnly":false,"mountOptions":["hard","vers=3.0"],"secretName":"smb-secret"}`
		const with = `"data":{"address":"//10.0.0.9/share","password":"S4MBA-KEY","username":"sam"}`
		assert.Contains(t, ask("stella", "GET", "/storages/samba", "", 200), without, "defect 6 of the original: it had the password")
		assert.Contains(t, ask("read", "GET", "/storages/samba", "", 200), without)
		ask("read", "GET", "/storages/samba?secrets=true", "", 403, "ForbiddenUserError")
		assert.Contains(t, ask("secrets", "GET", "/storages/samba", "", 200), with, "as VS Code's explorer reads it, with a token that was made for that")
		a := h.as("stella", "GET", "/api/v2/storages/samba?secrets", "")
		assert.Contains(t, a.Body, with)
		assert.NotContains(t, a.Body, "OTHER")
		assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
		blob := ask("stella", "GET", "/storages/blob?secrets", "", 200)
		assert.Contains(t, blob, `"note":"the credentials are in the namespace kube-system`)
		assert.NotContains(t, blob, "HIDDEN")
		assert.Contains(t, h.Printed.String(), `"verb":"secrets","kind":"storage","object":"samba","outcome":"done"`)
		assert.NotContains(t, h.Printed.String(), "S4MBA-KEY")
	})
}

func TestCredentialsOfAShareAreNotForWhoSeesAPartOfIt(t *testing.T) {
	h := newHouse(t)
	ask := h.asker(t)
	smb := func(readOnly bool, options string) *corev1.PersistentVolumeSource {
		return &corev1.PersistentVolumeSource{FlexVolume: &corev1.FlexPersistentVolumeSource{Driver: "microsoft.com/smb", ReadOnly: readOnly, SecretRef: &corev1.SecretReference{Name: "share-secret"},
			Options: map[string]string{"source": "//10.0.0.9/share", "mountoptions": options}}}
	}
	claim(t, h.cluster, "homes", map[string]string{"share": "false"}, smb(false, "vers=3.0,username=sam,password=S4MBA-KEY"))
	claim(t, h.cluster, "corpus", nil, smb(true, ""))
	claim(t, h.cluster, "corpus2", nil, smb(false, "vers=3.0,ro"))
	_, err := h.cluster.Client.CoreV1().Secrets(kube.JobNamespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "share-secret"},
		StringData: map[string]string{"username": "sam", "password": "S4MBA-KEY"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	h.Group("shares", func(g *v1.GroupSpec) { g.Storages = []string{"homes", "corpus", "corpus2"} })
	h.person(t, "sally", "shares")
	h.person(t, "rita", "shares", v1.GroupAdministrators)
	t.Cleanup(func() { // other tests share the cluster, and have one administrator
		_, err := h.People.Update(context.WithoutCancel(t.Context()), "rita", func(s *v1.UserSpec) error { s.Groups = []string{"shares"}; return nil })
		require.NoError(t, err)
	})
	for _, who := range []string{"sally", "rita"} {
		p, err := h.People.Person(who)
		require.NoError(t, err)
		made, err := h.Tokens.Application(t.Context(), p, token.New{Scopes: []rules.Scope{rules.ScopeRead, rules.ScopeSecrets}})
		require.NoError(t, err)
		h.tokens[who+"'s explorer"] = made.Token.Reveal()
	}
	assert.Contains(t, ask("sally", "GET", "/storages/homes", "", 200), `"mountOptions":["hard","vers=3.0,username=***,password=***"]`)
	for name, note := range map[string]string{"homes": "folders of all users", "corpus": "read only", "corpus2": "read only"} {
		for _, who := range []string{"sally", "sally's explorer"} {
			got := ask(who, "GET", "/storages/"+name+"?secrets", "", 200)
			assert.NotContains(t, got, "S4MBA-KEY", "%s, %s", who, name)
			assert.Contains(t, got, note)
		}
		assert.NotContains(t, ask("rita's explorer", "GET", "/storages/"+name, "", 200), "S4MBA-KEY", "not unasked")
		assert.Contains(t, ask("rita", "GET", "/storages/"+name+"?secrets", "", 200), "S4MBA-KEY")
	}
}
