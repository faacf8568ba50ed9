{{- define "drydock.file" -}}
{{ .Files.Get "processes.yaml" }}
{{- end }}

{{/* Returns all processes. Values of a process take precedence over values of its role, these over processes.yaml. */}}
{{- define "drydock.processes" -}}
{{- $processes := (include "drydock.file" . | fromYaml).processes }}
{{- range $name, $_ := .Values.processes }}
{{- if not (hasKey $processes $name) }}
{{- fail (printf "processes.%s: there is no such process. There are: %s" $name (keys $processes | sortAlpha | join ", ")) }}
{{- end }}
{{- end }}
{{- $result := dict }}
{{- range $name, $plan := $processes }}
{{- $memory := dict "memory" $plan.memory }}
{{- $base := dict "resources" (dict "requests" $memory "limits" $memory) "autoscaling" dict "env" dict }}
{{- $chosen := index $.Values.processes $name | default dict }}
{{- range $variable, $_ := $chosen.env }}
{{- if regexMatch "(SECRETS?|PASSWORD|TOKENS?|_KEY|TARGETS|DATABASE_URL|QUEUE_URL|REDIS_URL)$" $variable }}
{{- fail (printf "processes.%s.env.%s: a secret is no variable; it is a key of the Secret %s" $name $variable $.Values.secrets.name) }}
{{- end }}
{{- end }}
{{- $env := dict }}
{{- range $variable, $value := $plan.env }}
{{- $_ := set $env $variable (tpl $value $) }}
{{- end }}
{{- $one := mergeOverwrite (deepCopy $base) (deepCopy $plan) (deepCopy (index $.Values $plan.role)) (deepCopy $chosen) }}
{{- $_ := set $one "env" (mergeOverwrite $env (deepCopy ($chosen.env | default dict))) }}
{{- if and $.Values.workersPaused (eq $plan.role "worker") }}
{{- $_ := set $one "replicas" 0 }}
{{- end }}
{{- $_ := set $one "scaledByKeda" (and $.Values.keda.enabled $plan.hasQueue (not $.Values.workersPaused)) }}
{{- $_ := set $one "scaledByCpu" (and (eq $plan.role "api") $one.autoscaling.enabled) }}
{{- $_ := set $result $name $one }}
{{- end }}
{{- $result | toYaml }}
{{- end }}

{{/* Takes (list $ NAME). Returns the labels by which a process is selected. */}}
{{- define "drydock.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: drydock
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "drydock.labels" -}}
{{- $root := index . 0 -}}
{{ include "drydock.selector" . }}
app.kubernetes.io/version: {{ $root.Values.image.tag | default $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
{{- end }}

{{- define "drydock.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* Returns the part that all pods share: no token of the API server, no root, no variables about other Services. */}}
{{- define "drydock.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "drydock.container" -}}
image: {{ include "drydock.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{/* Takes (list $ NAME SECRETS [VOLUME]). Returns a volume with a process's keys of the Secret as files. */}}
{{- define "drydock.secretVolume" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
- name: {{ if gt (len .) 3 }}{{ index . 3 }}{{ else }}secrets{{ end }}
  secret:
    secretName: {{ index $root.Values.secrets.byProcess $name | default $root.Values.secrets.name }}
    defaultMode: 0440
    items:
      {{- range $variable, $key := index . 2 }}
      - { key: {{ $key }}, path: {{ $variable }} }
      {{- end }}
{{- end }}

{{/* Takes SECRETS. Returns a variable NAME_FILE with the path of each secret. */}}
{{- define "drydock.secretVariables" -}}
{{- range $variable, $_ := . }}
- { name: {{ $variable }}_FILE, value: /run/secrets/{{ $variable }} }
{{- end }}
{{- end }}

{{/* Takes an entry of `outside` in values.yaml. Returns the egress rule for it. */}}
{{- define "drydock.outsideRule" -}}
- to:
    {{- range .cidrs }}
    - ipBlock:
        cidr: {{ . }}
        {{- with $.except }}
        except: {{- toYaml . | nindent 10 }}
        {{- end }}
    {{- end }}
  {{- with .port }}
  ports: [{ protocol: TCP, port: {{ . }} }]
  {{- end }}
{{- end }}

{{- define "drydock.dnsRule" -}}
- ports: [{ protocol: UDP, port: 53 }, { protocol: TCP, port: 53 }]
{{- end }}
