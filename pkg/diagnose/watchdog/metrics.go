package watchdog

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Descriptions of the metrics. The alert rules use their names.
var (
	descExpiry = prometheus.NewDesc("pai_certificate_expiry_timestamp_seconds",
		"When the certificate of a server expires.", []string{"name", "address", "kind"}, nil)
	descSuccess = prometheus.NewDesc("pai_probe_success",
		"Whether the target answered: \"apiserver\" to /readyz, others to a TLS handshake.", []string{"target"}, nil)
	descTook = prometheus.NewDesc("pai_probe_duration_seconds",
		"How long the target took to answer.", []string{"target"}, nil)
	descRound = prometheus.NewDesc("pai_watchdog_round_timestamp_seconds",
		"When all certificates were last checked.", nil, nil)
	descRoundTook = prometheus.NewDesc("pai_watchdog_round_duration_seconds",
		"How long the check of all certificates took.", nil, nil)
	descBackupGood = prometheus.NewDesc("pai_backup_last_good_timestamp_seconds",
		"When the last good backup was made, by the schedule or by hand; without one, when the schedule was created.", nil, nil)
	descBackupOverdue = prometheus.NewDesc("pai_backup_overdue_timestamp_seconds",
		"When the last good backup is too old: two runs of the schedule have come after it, and could have been complete.", nil, nil)
	descBackupHistory = prometheus.NewDesc("pai_backup_last_history_timestamp_seconds",
		"When the last good backup with the history of jobs was made; without one, when the schedule was created.", nil, nil)
	descBackupHistoryOverdue = prometheus.NewDesc("pai_backup_history_overdue_timestamp_seconds",
		"When the last good backup with the history of jobs is too old.", nil, nil)
	descBackupSuspended = prometheus.NewDesc("pai_backup_suspended",
		"Whether the schedule of backups is suspended.", nil, nil)
	descBackupDue = prometheus.NewDesc("pai_backup_last_schedule_timestamp_seconds",
		"When a backup was last due.", nil, nil)
	descBackupSucceeded = prometheus.NewDesc("pai_backup_last_success_timestamp_seconds",
		"When a backup of the schedule was last complete.", nil, nil)
	descBackupRunning = prometheus.NewDesc("pai_backup_running",
		"How many backups are being made.", nil, nil)
	descBuild = prometheus.NewDesc("pai_watchdog_build_info",
		"The version of the watchdog, as a label.", []string{"version"}, nil)
)

type probe struct {
	target string
	took   time.Duration
	ok     bool
}

// certificate holds the expiry of a server's certificate. The time is zero if the server didn't send a certificate.
type certificate struct {
	server
	expires time.Time
}

// results holds the last measurements, so that a scrape needn't wait for new measurements.
type results struct {
	mu           sync.Mutex
	version      string
	health       *probe
	servers      []server
	probes       []probe
	certificates []certificate
	took         time.Duration
	at           time.Time
	backups      *backups
}

func newResults() *results { return &results{} }

func (r *results) setHealth(p probe) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.health = &p
}

func (r *results) setCertificates(servers []server, probes []probe, found []certificate, took time.Duration, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.servers, r.probes, r.certificates, r.took, r.at = servers, probes, found, took, at
}

func (r *results) setBackups(b *backups) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.backups = b
}

func (r *results) lastServers() []server {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.servers
}

// Describe implements prometheus.Collector.
func (r *results) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descExpiry, descSuccess, descTook, descRound, descRoundTook, descBuild, descBackupGood, descBackupOverdue, descBackupHistory, descBackupHistoryOverdue, descBackupSuspended, descBackupDue, descBackupSucceeded, descBackupRunning} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. It sends the last measurements, so that a removed server has no metrics.
func (r *results) Collect(ch chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(descBuild, 1, r.version)
	sendProbe := func(p probe) {
		success := 0.0
		if p.ok {
			success = 1
		}
		gauge(descSuccess, success, p.target)
		gauge(descTook, p.took.Seconds(), p.target)
	}
	if r.health != nil {
		sendProbe(*r.health)
	}
	for _, p := range r.probes {
		sendProbe(p)
	}
	for _, c := range r.certificates {
		if !c.expires.IsZero() {
			gauge(descExpiry, float64(c.expires.Unix()), c.name, c.address, c.kind)
		}
	}
	if !r.at.IsZero() {
		gauge(descRound, float64(r.at.Unix()))
		gauge(descRoundTook, r.took.Seconds())
	}
	if r.backups == nil {
		return
	}
	gauge(descBackupRunning, float64(r.backups.running))
	suspended := 0.0
	if r.backups.suspended {
		suspended = 1
	}
	gauge(descBackupSuspended, suspended)
	for d, at := range map[*prometheus.Desc]time.Time{descBackupGood: r.backups.good, descBackupOverdue: r.backups.overdue,
		descBackupHistory: r.backups.history, descBackupHistoryOverdue: r.backups.historyOverdue, descBackupDue: r.backups.due, descBackupSucceeded: r.backups.succeeded} {
		if !at.IsZero() {
			gauge(d, float64(at.Unix()))
		}
	}
}
