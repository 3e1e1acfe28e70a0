package peers_test

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/runtime/peers"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

// The expected values come from an independent program, which was written only from the description: the md5 of
// "[uid][label][k]", whose hex digits are cut at 12 and 24, summed, modulo the size of the range.
func TestHostPortsAreThoseOfOpenPAI(t *testing.T) {
	const uid = "0a5f1d3c-9b7e-4c1a-8f2d-6e3b5a7c9d10"
	for _, c := range []struct {
		uid, label    string
		k, start, end int
		want          int
	}{
		{uid, "ssh", 0, 15000, 40000, 37913},
		{uid, "http", 0, 15000, 40000, 23764},
		{uid, "http", 1, 15000, 40000, 16477},
		{uid, "master", 0, 15000, 40000, 23014},
		{"ffffffff-ffff-ffff-ffff-ffffffffffff", "ssh", 0, 20000, 20010, 20001},
		{"", "x", 3, 1, 2, 1},
		{uid, "ssh", 0, 0, 0, 37913}, // the default range
	} {
		assert.Equal(t, c.want, peers.HostPort(c.uid, c.label, c.k, c.start, c.end), "%+v", c)
	}
	got := peers.HostPorts(uid, []spec.Port{{Label: "http", Count: 2}, {Label: "ssh", Count: 1}, {Label: "none"}}, 15000, 40000)
	assert.Equal(t, map[string][]int{"http": {23764, 16477}, "ssh": {37913}, "none": {}}, got)
}

func TestPortsOfThePodNetworkAreNumberedInTheOrderOfLabels(t *testing.T) {
	got := peers.PodPorts([]spec.Port{{Label: "ssh", Count: 1}, {Label: "data", Count: 3}, {Label: "http", Count: 1}})
	assert.Equal(t, map[string][]int{"data": {15000, 15001, 15002}, "http": {15003}, "ssh": {15004}}, got)
}

func TestPortsOfThePodNetworkLeaveOutTheOneOfTheRendezvous(t *testing.T) {
	got := peers.PodPorts([]spec.Port{{Label: "a", Count: 10_000}, {Label: "b", Count: 10_000}})
	all := slices.Concat(got["a"], got["b"])
	assert.NotContains(t, all, peers.MasterPort)
	assert.Len(t, all, 20_000)
	slices.Sort(all)
	assert.Len(t, slices.Compact(all), 20_000)
}

func large(n int) *peers.Peers {
	r := peers.Role{Name: "worker"}
	for i := range n {
		r.PodIPs = append(r.PodIPs, fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255))
		r.HostIPs = append(r.HostIPs, fmt.Sprintf("192.168.%d.%d", i>>8&255, i&255))
		uid := make([]byte, 16)
		_, _ = rand.Read(uid)
		h := hex.EncodeToString(uid)
		r.PodUIDs = append(r.PodUIDs, h[:8]+"-"+h[8:12]+"-"+h[12:16]+"-"+h[16:20]+"-"+h[20:])
	}
	return &peers.Peers{Attempt: 3, Roles: []peers.Role{r}}
}

func TestPeersAreReadBackAsTheyWereWritten(t *testing.T) {
	want := large(1000)
	want.Roles = append(want.Roles, peers.Role{Name: "ps", PodIPs: []string{"fd00::1"}, HostIPs: []string{""}})
	data, err := peers.Encode(want)
	require.NoError(t, err)
	got, err := peers.Decode(data)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	again, err := peers.Encode(want)
	require.NoError(t, err)
	assert.Equal(t, data, again, "equal peers give equal bytes, so an unchanged ConfigMap isn't written")
	assert.Equal(t, "fd00::1", got.Role("ps").PodIPs[0])
	assert.Nil(t, got.Role("none"))
	assert.Nil(t, (*peers.Peers)(nil).Role("ps"))
}

func TestTenThousandTasksFitIntoAConfigMap(t *testing.T) {
	data, err := peers.Encode(large(10_000))
	require.NoError(t, err)
	assert.Less(t, len(data)*4/3, 900<<10, "base64, with room for the rest of the object")
}

func TestPeersThatCannotBeAreRefused(t *testing.T) {
	one := func(change func(*peers.Role)) *peers.Peers {
		r := peers.Role{Name: "worker", PodIPs: []string{"10.0.0.1"}, HostIPs: []string{"10.1.0.1"}}
		change(&r)
		return &peers.Peers{Roles: []peers.Role{r}}
	}
	for name, p := range map[string]*peers.Peers{
		"a name that a file of hosts would break at": one(func(r *peers.Role) { r.Name = "a\nb" }),
		"no address":                one(func(r *peers.Role) { r.PodIPs[0] = "" }),
		"an address with a command": one(func(r *peers.Role) { r.PodIPs[0] = "10.0.0.1 evil" }),
		"an address with a zone":    one(func(r *peers.Role) { r.PodIPs[0] = "fe80::1%$(evil)" }),
		"a machine with a zone":     one(func(r *peers.Role) { r.HostIPs[0] = "fe80::1%a\nb" }),
		"a machine that is none":    one(func(r *peers.Role) { r.HostIPs[0] = "x" }),
		"too few machines":          one(func(r *peers.Role) { r.HostIPs = nil }),
		"too many UIDs":             one(func(r *peers.Role) { r.PodUIDs = []string{"a", "b"} }),
		"a UID with a quote":        one(func(r *peers.Role) { r.PodUIDs = []string{"'"} }),
		"a negative attempt":        {Attempt: -1},
		"a role twice":              {Roles: []peers.Role{{Name: "a"}, {Name: "a"}}},
	} {
		_, err := peers.Encode(p)
		assert.Error(t, err, name)
	}
}

func TestAMessageThatIsCutOffOrAnotherIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no line":             {"", "unexpected end"},
		"no header":           {"x\n", "invalid character"},
		"a line too few":      {`{"roles":["a"]}` + "\n10.0.0.1,\n10.0.0.1,\n", `role "a" has a missing line`},
		"a line without end":  {`{"roles":["a"]}` + "\n10.0.0.1,\n10.0.0.1,\nu", `role "a" has a missing line`},
		"an entry in between": {`{"roles":["a"]}` + "\n10.0.0.1,,10.0.0.2,\n1.1.1.1,1.1.1.1,1.1.1.1,\n\n", "task a-1"},
	} {
		var buf bytes.Buffer
		z := gzip.NewWriter(&buf)
		_, err := z.Write([]byte(c.text))
		require.NoError(t, err)
		require.NoError(t, z.Close())
		_, err = peers.Decode(buf.Bytes())
		require.ErrorContains(t, err, c.want, name)
		_, err = peers.Decode(buf.Bytes()[:buf.Len()-5])
		require.Error(t, err, "%s: cut off", name)
	}
	good, err := peers.Encode(large(3))
	require.NoError(t, err)
	for end, change := range map[string]int{"another length": len(good) - 4, "another checksum": len(good) - 8} {
		for _, by := range []byte{1, 0xff} {
			bad := bytes.Clone(good)
			bad[change] += by
			_, err := peers.Decode(bad)
			require.Error(t, err, "%s by %d", end, by)
			assert.NotContains(t, err.Error(), "%!")
		}
	}
	_, err = peers.Decode(append(bytes.Clone(good), good...))
	require.ErrorContains(t, err, "longer than")
}

func TestABombIsNotUnpacked(t *testing.T) {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	zeros := make([]byte, 1<<20)
	for range 64 {
		_, err := z.Write(zeros)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	_, err := peers.Decode(buf.Bytes())
	require.ErrorContains(t, err, "more than")
}

func BenchmarkDecode(b *testing.B) {
	pod, host := large(1000), large(1000)
	pod.Roles[0].PodUIDs = nil
	for name, p := range map[string]*peers.Peers{"pod network": pod, "host network": host} {
		data, err := peers.Encode(p)
		require.NoError(b, err)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := peers.Decode(data)
				require.NoError(b, err)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	data, err := peers.Encode(large(3))
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := peers.Decode(data)
		if err != nil {
			return
		}
		again, err := peers.Encode(p)
		require.NoError(t, err, "what Decode takes Encode takes")
		got, err := peers.Decode(again)
		require.NoError(t, err)
		assert.Len(t, got.Roles, len(p.Roles))
	})
}
