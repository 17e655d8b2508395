// SPDX-License-Identifier: MIT OR Apache-2.0
//! Codes of the UniPro interconnect layer (UIC) in a host controller: commands, their results, and the attributes
//! that concern a UFS host.
//!
//! Sources: JESD223 (UIC command registers), Linux `include/ufs/ufshci.h` (`enum uic_cmd_dme`) and
//! `include/ufs/unipro.h`. Only names live here.

/// UIC commands, register UICCMD.
pub mod opcode {
    /// DME_GET: reads an attribute of this side.
    pub const GET: u8 = 0x01;
    /// DME_SET.
    pub const SET: u8 = 0x02;
    /// DME_PEER_GET: reads an attribute of the device's side.
    pub const PEER_GET: u8 = 0x03;
    /// DME_PEER_SET.
    pub const PEER_SET: u8 = 0x04;
    /// DME_POWERON.
    pub const POWER_ON: u8 = 0x10;
    /// DME_POWEROFF.
    pub const POWER_OFF: u8 = 0x11;
    /// DME_ENABLE.
    pub const ENABLE: u8 = 0x12;
    /// DME_RESET.
    pub const RESET: u8 = 0x14;
    /// DME_ENDPOINTRESET.
    pub const ENDPOINT_RESET: u8 = 0x15;
    /// DME_LINKSTARTUP.
    pub const LINK_STARTUP: u8 = 0x16;
    /// DME_HIBERNATE_ENTER.
    pub const HIBERNATE_ENTER: u8 = 0x17;
    /// DME_HIBERNATE_EXIT.
    pub const HIBERNATE_EXIT: u8 = 0x18;
}

/// Result codes, register UCMDARG2 bits 7:0.
pub mod result {
    /// Success.
    pub const SUCCESS: u8 = 0x00;
    /// There is no such attribute.
    pub const INVALID_ATTRIBUTE: u8 = 0x01;
    /// The value is invalid for the attribute.
    pub const INVALID_VALUE: u8 = 0x02;
    /// The attribute cannot be written.
    pub const READ_ONLY: u8 = 0x03;
    /// The peer does not answer.
    pub const PEER_COMMUNICATION: u8 = 0x08;
    /// The command failed.
    pub const FAILURE: u8 = 0x0A;
}

/// Attributes (UniPro 1.8 and M-PHY; Linux `include/ufs/unipro.h`).
pub mod attribute {
    /// PA_ActiveTxDataLanes.
    pub const ACTIVE_TX_LANES: u16 = 0x1560;
    /// PA_ConnectedTxDataLanes.
    pub const CONNECTED_TX_LANES: u16 = 0x1561;
    /// PA_TxGear.
    pub const TX_GEAR: u16 = 0x1568;
    /// PA_TxTermination.
    pub const TX_TERMINATION: u16 = 0x1569;
    /// PA_HSSeries: 1 rate A, 2 rate B.
    pub const HS_SERIES: u16 = 0x156A;
    /// PA_PWRMode: the receiver's mode in bits 7:4, the transmitter's in bits 3:0; 1 fast, 2 slow, 4 fast auto, 5 slow
    /// auto.
    pub const POWER_MODE: u16 = 0x1571;
    /// PA_ActiveRxDataLanes.
    pub const ACTIVE_RX_LANES: u16 = 0x1580;
    /// PA_ConnectedRxDataLanes.
    pub const CONNECTED_RX_LANES: u16 = 0x1581;
    /// PA_RxGear.
    pub const RX_GEAR: u16 = 0x1583;
    /// PA_RxTermination.
    pub const RX_TERMINATION: u16 = 0x1584;
    /// PA_MaxRxPWMGear.
    pub const MAX_RX_PWM_GEAR: u16 = 0x1586;
    /// PA_MaxRxHSGear.
    pub const MAX_RX_HS_GEAR: u16 = 0x1587;
}
