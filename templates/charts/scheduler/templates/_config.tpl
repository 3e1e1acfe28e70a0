{{/*
scheduler.configuration: hivedscheduler.yaml, complete. paictl makes it of the layout and the section;
for plain helm it is what the values say.
*/}}
{{- define "scheduler.configuration" -}}
{{- $whole := (.Values.global | default dict).schedulerConfiguration | default .Values.config -}}
{{- $whole | default (toYaml (dict "physicalCluster" .Values.physicalCluster "virtualClusters" .Values.virtualClusters)) -}}
{{- end -}}

{{/*
scheduler.kubeScheduler: the configuration of kube-scheduler: (dict "root" $ "virtualClusters" list).
Pods made for HiveD name a scheduler of their virtual cluster; it is the same one here.
*/}}
{{- define "scheduler.kubeScheduler" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
# pai-scheduler follows this election (docs/adr/0014); its margins are made for these times.
leaderElection:
  leaderElect: true
  resourceName: pai-scheduler
  resourceNamespace: {{ .root.Release.Namespace }}
  leaseDuration: 10s
  renewDeadline: 6s
  retryPeriod: 1500ms
# pai-scheduler chooses one node of all that there are.
percentageOfNodesToScore: 100
podInitialBackoffSeconds: {{ .root.Values.kubeScheduler.initialBackoffSeconds }}
podMaxBackoffSeconds: {{ .root.Values.kubeScheduler.maxBackoffSeconds }}
profiles:
  - schedulerName: pai-scheduler
  {{- range .virtualClusters }}
  - schedulerName: {{ printf "hivedscheduler-ds-%s" . | quote }}
  {{- end }}
extenders:
  - urlPrefix: http://127.0.0.1:9095/v1/extender
    filterVerb: filter
    preemptVerb: preempt
    bindVerb: bind
    enableHTTPS: false
    httpTimeout: 15s
    # Names of nodes are sent, not the nodes.
    nodeCacheCapable: true
    # Without it a pod could get GPUs that no one counted.
    ignorable: false
    # Pods that ask for it are its own; others it never sees.
    managedResources:
      - name: hivedscheduler.microsoft.com/pod-scheduling-enable
        ignoredByScheduler: true
{{- end -}}
