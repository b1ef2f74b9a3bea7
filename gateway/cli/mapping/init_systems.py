"""Endpoints that `gateway init` writes: for each system its address and its settings as YAML."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

_LOG_IN: Final = """\
    # username: gateway
    # password: ${{env:{variable}_PASSWORD}}  # a secret is always a reference
"""
_KEPT: Final = """\
    client_id: {gateway}-{name}
    durable: "{gateway}-{{pattern}}"  # the server keeps messages while the gateway is away
"""


@dataclass(frozen=True, slots=True)
class InitSystem:
    """One choice of `gateway init`; `port` is the default port of its brokers."""

    dialect: str
    port: int
    settings: str  # of the endpoint, with the parts in braces


SYSTEMS: Final = MappingProxyType(
    {
        "mqtt": InitSystem(
            "mqtt",
            1883,
            '    kind: mqtt\n    host: "{host}"\n    port: {port}\n'
            + _LOG_IN
            + "    # tls: {{ca_file: ca.pem}}  # a path is relative to this file\n",
        ),
        "ems": InitSystem(
            "ems",
            7222,
            '    kind: jms\n    dialect: ems\n    urls: ["tcp://{address}"]\n'
            "    # the jar files of the client, such as /opt/tibco/ems/10.2/lib/*.jar\n"
            '    classpath: ["${{env:EMS_CLASSPATH}}"]\n' + _KEPT + _LOG_IN,
        ),
        "activemq": InitSystem(
            "ems",
            61616,
            '    kind: jms\n    dialect: ems  # its names have dots, too\n    urls: ["tcp://{address}"]\n'
            "    factory: org.apache.activemq.ActiveMQConnectionFactory\n"
            "    # the jar file of the client, such as /opt/activemq/activemq-all-5.17.2.jar\n"
            '    classpath: ["${{env:ACTIVEMQ_CLASSPATH}}"]\n' + _KEPT + _LOG_IN,
        ),
        "ibm": InitSystem(
            "ibm",
            1414,
            "    kind: jms\n    dialect: ibm\n"
            '    urls: ["mq://{address}"]  # `properties` has the address\n'
            "    factory: com.ibm.mq.jms.MQConnectionFactory\n"
            '    properties: ["hostName={host}", port={port}, queueManager=QM1,'
            " channel=GATEWAY.SVRCONN, transportType=1]\n"
            "    # the jar files of the client, such as /opt/mqm/java/lib/*.jar\n"
            '    classpath: ["${{env:MQ_CLASSPATH}}"]\n' + _KEPT + _LOG_IN,
        ),
        "solace": InitSystem(
            "smf",
            55555,
            '    kind: solace\n    url: "tcp://{address}"  # tcps:// with TLS\n    vpn: default\n'
            "    username: gateway\n"
            "    # password: ${{env:{variable}_PASSWORD}}  # a secret is always a reference\n",
        ),
        "yami4": InitSystem(
            "yami4", 12345, '    kind: yami4\n    url: "tcp://{address}"  # tcps:// with TLS\n'
        ),
    }
)
